"""A model's safetensors files: found, checked for their full length, and identified by a digest."""

import contextlib
import hashlib
import json
import os
import struct
import tempfile
from pathlib import Path

from .model_json import ModelFilesError, parse_json

SIDECAR = ".octavo-revision.json"
"""Remembers the digest while sizes and modification times stay the same."""
MAX_HEADER_BYTES = 100_000_000


def find_weight_files(directory: Path) -> list[Path]:
    """Every safetensors file, in order of name. Raises ModelFilesError for none, or for a damaged one."""
    files = sorted(directory.glob("*.safetensors"))
    if not files:
        raise ModelFilesError(f"{directory.name} holds no .safetensors file")
    for path in files:
        _check_length(path)
    return files


def weights_revision(files: list[Path]) -> str:
    """Hex SHA-256 over the names and contents of `files`, all of one directory. Raises ModelFilesError."""
    try:
        return _revision(files)
    except OSError as error:
        raise ModelFilesError(f"the weights can't be read: {error.strerror or error}") from error


def _check_length(path: Path) -> None:
    """A safetensors file is u64 n, n bytes of JSON header, data; the header names where each tensor ends."""
    with path.open("rb") as file:
        start = file.read(8)
        num_bytes = struct.unpack("<Q", start)[0] if len(start) == 8 else MAX_HEADER_BYTES + 1
        if num_bytes > MAX_HEADER_BYTES:
            raise ModelFilesError(f"{path.name} is not a safetensors file")
        header = parse_json(file.read(num_bytes), f"{path.name} header")
    try:
        end = max(entry["data_offsets"][1] for key, entry in header.items() if key != "__metadata__")
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ModelFilesError(f"{path.name} has a malformed header") from error
    expected = 8 + num_bytes + end
    if path.stat().st_size != expected:
        raise ModelFilesError(f"{path.name} has {path.stat().st_size} bytes, its header says {expected}")


def _revision(files: list[Path]) -> str:
    sidecar = files[0].parent / SIDECAR
    facts = {path.name: [path.stat().st_size, path.stat().st_mtime_ns] for path in files}
    remembered = _read(sidecar)
    if remembered.get("files") == facts and isinstance(remembered.get("revision"), str):
        return str(remembered["revision"])
    revision = _digest(files)
    with contextlib.suppress(OSError):  # a read-only model directory is hashed at every start
        _write(sidecar, {"files": facts, "revision": revision})
    return revision


def _digest(files: list[Path]) -> str:
    whole = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256")
        whole.update(path.name.encode() + b"\0" + content.digest())
    return whole.hexdigest()


def _read(sidecar: Path) -> dict[str, object]:
    try:
        value = json.loads(sidecar.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _write(sidecar: Path, value: dict[str, object]) -> None:
    """Replace at once, so that two engines starting together never read half a file."""
    handle, unfinished = tempfile.mkstemp(prefix=SIDECAR, dir=sidecar.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(value, file)
    os.replace(unfinished, sidecar)
