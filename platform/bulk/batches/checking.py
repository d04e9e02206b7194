"""Is a file a batch's input? Line by line, with the number of each line that is not."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, NamedTuple

from bulk.batches.input_lines import RawLine, raw_lines, read_line
from bulk.limits import MAX_ERRORS, MAX_LINE_BYTES, MAX_LINES
from inference_engine.contract.codes import Code
from tenants.errors import Denied

_COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")


class GoodLine(NamedTuple):
    number: int
    offset: int
    length: int
    custom_id: str


@dataclass(slots=True)
class InputCheck:
    """`errors` is as clients see it, and cut at MAX_ERRORS."""

    endpoint: str
    errors: list[dict[str, object]] = field(default_factory=list)
    num_lines: int = 0
    _seen: dict[bytes, int] = field(default_factory=dict)
    """Digest of a custom_id -> its line: 50,000 of these take some megabytes, the ids themselves 25."""

    def good_lines(self, content: IO[bytes]) -> Iterator[GoodLine]:
        """Stops where there is no point in going on."""
        for line in raw_lines(content):
            self.num_lines += 1
            if self.num_lines > MAX_LINES:
                self._add("too_many_lines", f"A batch has at most {MAX_LINES} lines.", None, line.number)
                return
            good = self._checked(line)
            if good is not None:
                yield good
            if len(self.errors) >= MAX_ERRORS:
                return
        if not self.num_lines:
            self._add("empty_file", "The file has no lines.", None, None)

    def _checked(self, line: RawLine) -> GoodLine | None:
        if line.content is None:
            message = f"The line is longer than the {MAX_LINE_BYTES} bytes that a line may have."
            self._add("line_too_long", message, None, line.number)
            return None
        try:
            found = read_line(line.content)
        except Denied as denied:
            self._add(denied.code.value, _explained(line, denied), denied.param, line.number)
            return None
        if found.url != self.endpoint:
            message = f"The url is '{found.url[:64]}', the batch's endpoint {self.endpoint}."
            self._add("mismatched_endpoint", message, "url", line.number)
        elif not bytes(found.body).startswith(b"{"):
            self._add(Code.INVALID_REQUEST.value, "The body must be an object.", "body", line.number)
        elif (first := self._first_with(found.custom_id, line.number)) != line.number:
            message = f"The custom_id '{found.custom_id[:64]}' is that of line {first} already."
            self._add("duplicate_custom_id", message, "custom_id", line.number)
        else:
            return GoodLine(line.number, line.offset, len(line.content), found.custom_id)
        return None

    def _first_with(self, custom_id: str, number: int) -> int:
        digest = hashlib.blake2b(custom_id.encode(), digest_size=16).digest()
        return self._seen.setdefault(digest, number)

    def _add(self, code: str, message: str, param: str | None, line: int | None) -> None:
        self.errors.append({"code": code, "message": message, "param": param, "line": line})


def _explained(line: RawLine, denied: Denied) -> str:
    assert line.content is not None
    if line.number == 1 and line.content.startswith(_COMPRESSED):
        return "The file is compressed or an archive; it must be plain text, one JSON object a line."
    if b"\0" in line.content:
        return "The line holds binary data; it must be one JSON object."
    return denied.message.replace("The body is", "The line is")
