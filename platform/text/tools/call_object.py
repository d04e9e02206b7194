"""One call as a JSON object: `{"name": "f", "arguments": {...}}`, and what else models make of it."""

import json
import re
from collections.abc import Collection
from typing import Any

KEYS = ("name", "arguments", "parameters", "function", "type", "id")
"""Keys a call may have. An object that begins with another one is none."""

_HEAD = re.compile(
    r'\s{0,64}\{\s{0,64}"name"\s{0,64}:\s{0,64}"(?P<name>[^"\\]{1,256})"\s{0,64},'
    r'\s{0,64}"(?:arguments|parameters)"\s{0,64}:\s{0,64}(?=\{)'
)
_FIRST_KEY = re.compile(r'\s*\{\s*"(?P<key>[^"]*)(?P<closed>"?)')


class NoCall(ValueError):
    """It looked like a call, and is none."""

    num_read = 0
    """Characters of the latest text until that was clear."""


def read_head(text: str, names: Collection[str]) -> tuple[str, int] | None:
    """Name, and where the arguments begin; None while that can't be told. Raises NoCall."""
    if head := _HEAD.match(text):
        if head["name"] not in names:
            raise NoCall
        return head["name"], head.end()
    _check_beginning(text)
    return None


def _check_beginning(text: str) -> None:
    """Raises NoCall as soon as no call can come of it, so that other JSON is let out at once."""
    found = _FIRST_KEY.match(text)
    if found is None:
        rest = text.lstrip()
        if rest and (rest[0] != "{" or rest[1:].strip()):
            raise NoCall
    elif not any(_begins(key, found["key"], bool(found["closed"])) for key in KEYS):
        raise NoCall


def _begins(key: str, text: str, is_whole: bool) -> bool:
    return key == text if is_whole else key.startswith(text)


def read_call(text: str, names: Collection[str]) -> tuple[str, str]:
    """Name and arguments, as JSON text, of a whole object with its keys in any order. Raises NoCall."""
    try:
        call = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise NoCall from None
    if isinstance(call.get("function"), dict):
        call = call["function"]
    name = call.get("name", call.get("function"))
    if not isinstance(name, str) or name not in names:
        raise NoCall
    return name, _arguments(call)


def _arguments(call: dict[str, Any]) -> str:
    arguments = call.get("arguments", call.get("parameters"))
    if isinstance(arguments, str):
        return _encodable(arguments) or "{}"
    if arguments is None:
        return "{}"
    if not isinstance(arguments, dict):
        raise NoCall
    return json.dumps(arguments)


def _encodable(text: str) -> str:
    """An escape may have spelt half a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NoCall from None
    return text


def _refuse(constant: str) -> None:
    raise NoCall
