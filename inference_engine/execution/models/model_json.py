"""Reading a model directory's JSON files, with errors that name the file."""

import json
from pathlib import Path
from typing import Any


class ModelFilesError(ValueError):
    """A model directory with a file missing, unreadable or contradicting another."""


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelFilesError(f"{path.name}: {error.strerror or error}") from error


def read_json(path: Path) -> dict[str, Any]:
    return parse_json(read_bytes(path), path.name)


def read_optional_json(path: Path) -> dict[str, Any]:
    return read_json(path) if path.exists() else {}


def parse_json(data: bytes, name: str) -> dict[str, Any]:
    """The object in `data`, which error messages call `name`."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelFilesError(f"{name} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ModelFilesError(f"{name} is not a JSON object")
    return value
