"""An input file read line by line, in the memory of one line."""

from collections.abc import Iterator
from typing import IO, Annotated, Literal, NamedTuple

from msgspec import Meta, Raw, Struct

from bulk.limits import MAX_LINE_BYTES
from gateway.orders.fields import WITHOUT_NUL
from gateway.transport.strict_json import StrictDecoder

BOM = b"\xef\xbb\xbf"
BLANK = b" \t\r\n"
SKIPPED_AT_ONCE = 1024 * 1024


class InputLine(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    custom_id: Annotated[str, Meta(min_length=1, max_length=512, pattern=WITHOUT_NUL)]
    method: Literal["POST"]
    url: str
    body: Raw


class RawLine(NamedTuple):
    number: int
    """From 1, blank ones counted."""
    offset: int
    """Of its first byte in the file."""
    content: bytes | None
    """None: it is longer than a line may be."""


_decoder = StrictDecoder(InputLine)


def raw_lines(content: IO[bytes]) -> Iterator[RawLine]:
    """Blank lines are left out, as are a byte-order mark and the ends of lines, whichever they are."""
    number = offset = 0
    while line := content.readline(MAX_LINE_BYTES + len(b"\r\n")):
        number += 1
        start, offset = offset, offset + len(line)
        if len(line.rstrip(b"\r\n")) > MAX_LINE_BYTES:
            offset += 0 if line.endswith(b"\n") else _skip_line(content)
            yield RawLine(number, start, None)
            continue
        if start == 0 and line.startswith(BOM):
            start, line = len(BOM), line[len(BOM) :]
        if line := line.rstrip(BLANK):
            yield RawLine(number, start, line)


def read_line(line: bytes) -> InputLine:
    """Raises Denied."""
    found: InputLine = _decoder.decode(line)
    return found


def _skip_line(content: IO[bytes]) -> int:
    num_skipped = 0
    while piece := content.readline(SKIPPED_AT_ONCE):
        num_skipped += len(piece)
        if piece.endswith(b"\n"):
            break
    return num_skipped
