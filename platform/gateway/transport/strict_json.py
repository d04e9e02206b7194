"""A request body against its typed schema. Whatever is wrong becomes one Denied that names the field."""

import json
import re
from typing import Any, TypeVar

import msgspec

from inference_engine.contract.codes import Code
from tenants.errors import Denied

BodyT = TypeVar("BodyT", bound=msgspec.Struct)

_WHERE = re.compile(r" - at (?:`key` in )?`\$\.?(?P<path>[^`]*)`$")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`")
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`")
_ESCAPED_NAME = re.compile(rb'"\w*\\u00[0-9A-Fa-f]{2}(?:\w|\\u00[0-9A-Fa-f]{2})*"\s*:')
"""A name that is written with an escape may be any of ours."""


class StrictDecoder:
    """Decodes one kind of body. Refuses unknown and repeated fields, NaN, lone surrogates, wrong types."""

    def __init__(self, kind: type[BodyT]) -> None:
        self._decoder = msgspec.json.Decoder(kind)
        names = "|".join(re.escape(field.encode_name) for field in msgspec.structs.fields(kind))
        self._top_names = re.compile(rf'"({names})"\s*:'.encode())

    def decode(self, body: bytes) -> Any:
        """Raises Denied: INVALID_JSON, INVALID_REQUEST."""
        try:
            value = self._decoder.decode(body)
            self._check_repeated(body)
        except msgspec.ValidationError as error:
            raise _wrong_field(str(error)) from None
        except (ValueError, RecursionError) as error:
            raise Denied(Code.INVALID_JSON, f"The body is not valid JSON: {_plain(error)}.") from None
        return value

    def _check_repeated(self, body: bytes) -> None:
        """Two parsers may read a repeated field differently; only suspects pay for the second parse."""
        found = self._top_names.findall(body)
        if len(found) != len(set(found)) or (b"\\u00" in body and _ESCAPED_NAME.search(body)):
            _check_top_level(body)


PartT = TypeVar("PartT")


def checked_part(value: Any, kind: type[PartT], at: str, *, is_text: bool = False) -> PartT:
    """A part of a decoded body against a schema of its own; `at` is its place. Raises Denied.

    `is_text`: numbers are written out, as in a query string.
    """
    try:
        return msgspec.convert(value, kind, strict=not is_text)
    except msgspec.ValidationError as error:
        raise _wrong_field(str(error), at) from None


def _check_top_level(body: bytes) -> None:
    """Objects are decoded from the inside out, so the last pairs seen are those of the body itself."""
    last: list[list[str]] = []

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        last[:] = [[name for name, _ in pairs]]
        return {}

    json.loads(body, object_pairs_hook=note)
    seen: set[str] = set()
    for name in last[0]:
        if name in seen:
            raise Denied(Code.INVALID_JSON, f"The field '{name}' is given twice.", param=name)
        seen.add(name)


def _wrong_field(text: str, at: str = "") -> Denied:
    where = _WHERE.search(text)
    path = _joined(at, where["path"] if where else "")
    problem = text[: where.start()] if where else text
    if unknown := _UNKNOWN.fullmatch(problem):
        path = _joined(path, unknown["name"])
        return Denied(Code.INVALID_REQUEST, f"Unrecognized request argument supplied: {path}", param=path)
    if missing := _MISSING.fullmatch(problem):
        path = _joined(path, missing["name"])
        return Denied(Code.INVALID_REQUEST, f"Missing required parameter: '{path}'.", param=path)
    problem = problem.replace("`", "")
    if not path:
        return Denied(Code.INVALID_REQUEST, f"The body is not as expected: {problem}.")
    return Denied(Code.INVALID_REQUEST, f"Invalid value for '{path}': {problem}.", param=path)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name and not name.startswith("[") else path + name


def _plain(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return str(error).removeprefix("JSON is malformed: ")
