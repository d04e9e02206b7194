"""SHA-256 over a model's weight files, remembered beside them while sizes and times stay the same."""

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path

SIDECAR = ".octavo-revision.json"


def weights_revision(files: list[Path]) -> str:
    """Hex digest over the names and contents of `files`, all of one directory. Raises OSError."""
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
    for path in sorted(files):
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
