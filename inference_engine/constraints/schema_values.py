"""What the value of a keyword must look like."""

from typing import Any

from .errors import unsupported

MULTIPLE_LIMIT = 10_000
"""The automaton of a multiple has as many states."""
TYPES = frozenset(["null", "boolean", "integer", "number", "string", "array", "object"])
_SHORT_ESCAPES = "\b\f\n\r\t"


def size_of(keyword: str, value: Any, place: str) -> int:
    """A whole number of at least 0; 2.0 is one."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or value < 0 or int(value) != value:
        raise unsupported(keyword, place, "must be a whole number of at least 0")
    return int(value)


def check_number(keyword: str, value: Any, place: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise unsupported(keyword, place, "must be a number")
    return value


def check_strings(keyword: str, value: Any, place: str) -> Any:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise unsupported(keyword, place, "must be a list of strings")
    return value


def check_type(keyword: str, value: Any, place: str) -> Any:
    names = value if isinstance(value, list) else [value]
    unknown = [name for name in names if not isinstance(name, str) or name not in TYPES]
    if unknown or not names:
        raise unsupported(keyword, place, f"names no type of JSON: {str(value)[:80]}")
    return value


def check_literals(keyword: str, value: Any, place: str) -> Any:
    if keyword == "enum" and (not isinstance(value, list) or not value):
        raise unsupported(keyword, place, "must be a list that is not empty")
    if not _is_writable(value):
        raise unsupported(keyword, place, "with control characters is not supported")
    return value


def _is_writable(value: Any) -> bool:
    r"""Outputs have no \u escapes (grammars.py), so some control characters can't be written in them."""
    if isinstance(value, str):
        return not any(
            (character < " " and character not in _SHORT_ESCAPES) or character == "\x7f"
            for character in value
        )
    if isinstance(value, dict):
        return all(_is_writable(name) and _is_writable(item) for name, item in value.items())
    return not isinstance(value, list) or all(map(_is_writable, value))
