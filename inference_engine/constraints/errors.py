"""A constraint that can't be served: its own request's fault, or more than this engine does."""

from inference_engine.contract.codes import Code


class ConstraintError(ValueError):
    """Refuses one request. `param` names the field of Generate that is at fault."""

    def __init__(self, message: str, *, code: Code = Code.INVALID_REQUEST, param: str = "constraint") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param


def unsupported(keyword: str, place: str, why: str = "is not supported") -> ConstraintError:
    """A keyword refused by its name, with where it stands in the schema (a JSON pointer)."""
    return ConstraintError(f"JSON schema: '{keyword}' {why} (at {place or '#'})")
