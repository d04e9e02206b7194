"""Tells calls from content in a model's output, piece by piece."""

from collections.abc import Callable, Collection, Iterable

from .call_object import NoCall
from .events import CallArguments, CallEvent, ParsedPart
from .readers import CallReader, NamedReader, ObjectReader
from .syntax import ToolSyntax

SEPARATORS = (",", ";")
_NAME_SIGNS = "_-."


class ToolParser:
    """Push the text as it comes. However it is cut, the parts joined are the same.

    What turns out to be no call (no such tool, not the shape of one, the output ended before it was clear) is
    content, marker and all. White space between content and calls belongs to neither.
    """

    def __init__(
        self, syntax: ToolSyntax, names: Collection[str], new_id: Callable[[], str] | None = None
    ) -> None:
        """`names` of the tools that may be called."""
        self.num_calls = 0
        self._syntax = syntax
        self._names = frozenset(names)
        self._new_id = new_id or syntax.new_id
        self._parts: list[ParsedPart] = []
        self._held = ""
        """May be the beginning of a marker."""
        self._raw = ""
        """What was read since the marker, the marker included: content if no call comes of it."""
        self._is_start = True
        self._is_behind_call = False
        self._is_among_calls = False
        """Behind a marker or a call: a call, a separator or a closing marker may come."""
        self._has_call = self._in_array = False
        """Since the marker."""
        self._reader: CallReader | None = None

    def push(self, text: str) -> list[ParsedPart]:
        rest: str | None = text
        while rest:
            if self._reader is not None:
                rest = self._read(self._reader, rest)
            elif self._is_among_calls:
                rest = self._look_for_call(rest)
            else:
                rest = self._look_for_marker(rest)
        return self._taken()

    def finish(self) -> list[ParsedPart]:
        """The end of the output."""
        if self._reader is not None and self._reader.has_begun:
            events: list[CallEvent] = []
            self._reader.finish(events)
            self._parts += events
        elif not self._is_among_calls or self._reader is not None or not self._has_call:
            self._parts.append(self._raw + self._held)
        self._reader, self._raw, self._held = None, "", ""
        return self._taken()

    def _taken(self) -> list[ParsedPart]:
        parts, self._parts = self._parts, []
        return _merged(parts)

    # content, until a marker comes

    def _look_for_marker(self, text: str) -> str | None:
        text, self._held = self._held + text, ""
        if self._is_behind_call:
            text = text.lstrip()
            if not text:
                return None
            self._is_behind_call = False
        if not self._is_start:
            return self._until_marker(text)
        size = self._marker_at_start(text)
        if size is None:
            self._held = text
            return None
        self._is_start = False
        return self._until_marker(text) if size < 0 else self._begin_calls(text, 0, size)

    def _marker_at_start(self, text: str) -> int | None:
        """Characters of the marker that begins the output, -1 for none, None while that can't be told."""
        start = text.lstrip()
        if not start:
            return None
        if self._syntax.takes_bare and start[0] in "{[":
            return len(text) - len(start)
        for marker in self._syntax.first_openers:
            if start.startswith(marker):
                return len(text) - len(start) + len(marker)
            if marker.startswith(start):
                return None
        return -1

    def _until_marker(self, text: str) -> str | None:
        found = [(place, marker) for marker in self._syntax.openers if (place := text.find(marker)) >= 0]
        if found:
            place, marker = min(found)
            start = len(text[:place].rstrip())
            self._parts.append(text[:start])
            return self._begin_calls(text, start, place + len(marker))
        end = len(text)
        if self._syntax.openers:
            end = len(text[: end - _num_of_marker(text, self._syntax.openers)].rstrip())
        self._parts.append(text[:end])
        self._held = text[end:]
        return None

    def _begin_calls(self, text: str, start: int, end: int) -> str:
        self._raw = text[start:end]
        self._is_among_calls = True
        self._has_call = self._in_array = False
        return text[end:]

    # behind a marker, or between calls

    def _look_for_call(self, text: str) -> str | None:
        text, self._held = self._held + text, ""
        rest = text.lstrip()
        self._raw += text[: len(text) - len(rest)]
        if not rest:
            return None
        if rest[0] == "{" or self._may_be_name(rest[0]):
            return self._begin_reading(rest)
        sign = self._sign_of(rest)
        if sign:
            self._raw += sign
            return rest[len(sign) :]
        if self._has_call and any(closer.startswith(rest) for closer in self._syntax.closers):
            self._held = rest
            return None
        return self._leave_calls(rest)

    def _sign_of(self, text: str) -> str:
        """The bracket, separator or closing marker that `text` begins with, where it may stand."""
        if text[0] == "[" and not (self._has_call or self._in_array):
            self._in_array = True
            return "["
        if not self._has_call:
            return ""
        if text[0] == "]" and self._in_array:
            self._in_array = False
            return "]"
        signs = (*SEPARATORS, *self._syntax.closers)
        return next((sign for sign in signs if text.startswith(sign)), "")

    def _may_be_name(self, character: str) -> bool:
        is_first = not (self._has_call or self._in_array)
        return self._syntax.takes_names and is_first and (character.isalnum() or character in _NAME_SIGNS)

    def _leave_calls(self, rest: str) -> str:
        if not self._has_call:
            self._parts.append(self._raw)
        self._raw = ""
        self._is_among_calls = False
        self._is_behind_call = self._has_call
        return rest

    # inside a call

    def _begin_reading(self, rest: str) -> str:
        kind = ObjectReader if rest[0] == "{" else NamedReader
        self._reader = kind(self.num_calls, self._new_id(), self._names)
        return rest

    def _read(self, reader: CallReader, text: str) -> str | None:
        events: list[CallEvent] = []
        try:
            rest = reader.push(text, events) if reader.has_begun else self._read_head(reader, text, events)
        except NoCall as no_call:
            return self._give_up(text[: no_call.num_read], text[no_call.num_read :])
        self._parts += events
        if rest is not None:
            self._reader = None
        return rest

    def _read_head(self, reader: CallReader, text: str, events: list[CallEvent]) -> str | None:
        """A character at a time: however the text is cut, the same one ends a try."""
        for index, character in enumerate(text):
            try:
                rest = reader.push(character, events)
            except NoCall as no_call:
                no_call.num_read = index + 1
                raise
            if reader.has_begun:
                self._has_call, self._raw = True, ""
                self.num_calls += 1
                behind = text[index + 1 :]
                return reader.push(behind, events) if rest is None else rest + behind
        self._raw += text
        return None

    def _give_up(self, read: str, rest: str) -> str:
        self._parts.append(self._raw + read)
        self._raw, self._reader, self._is_among_calls = "", None, False
        return rest


def _num_of_marker(text: str, markers: Iterable[str]) -> int:
    """Characters at the end of `text` that begin a marker."""
    longest = 0
    for marker in markers:
        for size in range(min(len(marker) - 1, len(text)), longest, -1):
            if marker.startswith(text[-size:]):
                longest = size
                break
    return longest


def _merged(parts: Iterable[ParsedPart]) -> list[ParsedPart]:
    """Neighbours of one kind as one, empty texts left out."""
    merged: list[ParsedPart] = []
    for part in parts:
        last = merged[-1] if merged else None
        if isinstance(part, str) and isinstance(last, str):
            merged[-1] = last + part
        elif isinstance(part, CallArguments) and isinstance(last, CallArguments):
            merged[-1] = CallArguments(part.index, last.text + part.text)
        elif part:
            merged.append(part)
    return merged
