"""One log file a child, cut by size. Children append to it directly, so none ever waits for a reader."""

import shutil
from pathlib import Path
from typing import BinaryIO

MAX_LOG_BYTES = 20 * 1024 * 1024


def open_log(path: Path) -> BinaryIO:
    """Unbuffered, for appending; readable by its owner alone."""
    path.touch(mode=0o600)
    return open(path, "ab", buffering=0)


def rotate(path: Path, limit: int = MAX_LOG_BYTES) -> bool:
    """Move what is there to `NAME.1` once it exceeds `limit` bytes. Appending processes keep their open file,
    so it is copied and cut; a line written in between may be lost."""
    if not path.exists() or path.stat().st_size <= limit:
        return False
    older = path.with_name(path.name + ".1")
    shutil.copyfile(path, older)
    older.chmod(0o600)
    with open(path, "r+b") as current:
        current.truncate(0)
    return True


def last_lines(path: Path, count: int) -> list[str]:
    """For messages about a child that died."""
    if not path.exists():
        return []
    with open(path, "rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - 8192))
        return file.read().decode("utf-8", "replace").splitlines()[-count:]
