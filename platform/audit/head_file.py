"""The chain's head, outside the database: one line a record, `id hash`, in a file that is only added to."""

import os
import re
from pathlib import Path

import structlog

log = structlog.get_logger(__name__)

_LINE = re.compile(r"([1-9][0-9]{0,18}) ([0-9a-f]{64})")


def write_head(path: Path, record_id: int, record_hash: str) -> None:
    """After the commit. One write, so that lines of several processes never mix."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, f"{record_id} {record_hash}\n".encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:  # the change is committed; the next record's head covers this one too
        log.error("audit_head_not_written", record_id=record_id, error=str(error))


def read_heads(path: Path) -> dict[int, str]:
    """Raises OSError, and ValueError for a line that is none or that contradicts another."""
    heads: dict[int, str] = {}
    with path.open(encoding="ascii") as lines:
        for number, line in enumerate(lines, 1):
            match = _LINE.fullmatch(line.rstrip("\n"))
            if match is None:
                raise ValueError(f"line {number} is no head")
            record_id = int(match[1])
            if heads.setdefault(record_id, match[2]) != match[2]:
                raise ValueError(f"line {number} contradicts an earlier head of record {record_id}")
    return heads
