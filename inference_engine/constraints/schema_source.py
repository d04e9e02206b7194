"""The text of a JSON schema, parsed within limits."""

import json
import math
from typing import Any

from .errors import ConstraintError

MAX_SOURCE_CHARACTERS = 131_072
MAX_NESTING = 256


def parse_schema(source: str) -> Any:
    """The schema as Python values, numbers finite, at most MAX_NESTING deep. Raises ConstraintError."""
    check_length(source)
    try:
        schema = json.loads(source, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ConstraintError(f"the JSON schema is not valid JSON: {str(error)[:200]}") from error
    _check_values(schema, 0)
    return schema


def check_length(source: str) -> None:
    if len(source) > MAX_SOURCE_CHARACTERS:
        raise ConstraintError(
            f"the constraint has {len(source)} characters, at most {MAX_SOURCE_CHARACTERS} are supported"
        )
    if any("\ud800" <= character <= "\udfff" for character in source):
        raise ConstraintError("the constraint is not valid Unicode: it holds a lone surrogate")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _check_values(value: Any, depth: int) -> None:
    if depth > MAX_NESTING:
        raise ConstraintError(f"the JSON schema is nested more than {MAX_NESTING} levels deep")
    if isinstance(value, float) and not math.isfinite(value):
        raise ConstraintError("the JSON schema holds a number that is too large")
    if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        raise ConstraintError("the JSON schema holds a lone surrogate")
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if isinstance(value, dict):
        for name in value:
            _check_values(name, depth)
    for item in inner:
        _check_values(item, depth + 1)
