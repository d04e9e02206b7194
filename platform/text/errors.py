"""What goes wrong with text: a request's fault, or a model's."""

from inference_engine.contract.codes import Code


class PromptError(Exception):
    """A request whose text can't become a prompt. The gateway turns it into its error body."""

    def __init__(self, message: str, param: str | None, code: Code = Code.INVALID_REQUEST) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code


class ModelTextError(Exception):
    """A Description whose tokenizer or chat template can't be served faithfully."""
