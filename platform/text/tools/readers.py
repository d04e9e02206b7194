"""Readers of one call. Its text arrives in pieces; its arguments leave as they come."""

import re
from collections.abc import Collection
from typing import Protocol

from .call_object import NoCall, read_call, read_head
from .events import CallArguments, CallBegin, CallEnd, CallEvent
from .json_nesting import Nesting


class CallReader(Protocol):
    @property
    def has_begun(self) -> bool:
        """From here on it is a call, whatever comes."""

    def push(self, text: str, events: list[CallEvent]) -> str | None:
        """Adds events; returns the text behind the call once it has ended. Raises NoCall before it began."""

    def finish(self, events: list[CallEvent]) -> None:
        """The output ended inside this call."""


class ArgumentsReader:
    """A JSON object, passed on as it is, up to the bracket that closes it."""

    def __init__(self, index: int, call_id: str) -> None:
        self.index, self.call_id = index, call_id
        self.has_begun = self.has_ended = False
        self._nesting = Nesting()

    def begin(self, name: str, events: list[CallEvent]) -> None:
        self.has_begun = True
        events.append(CallBegin(self.index, self.call_id, name))

    def push(self, text: str, events: list[CallEvent]) -> str | None:
        end = self._nesting.end_of(text)
        if text[:end]:
            events.append(CallArguments(self.index, text[:end]))
        if end is None:
            return None
        self.has_ended = True
        return text[end:]

    def end(self, events: list[CallEvent]) -> None:
        events.append(CallEnd(self.index, self.has_ended))


class ObjectReader:
    """`{"name": "f", "arguments": {...}}`; with its keys in another order it is read as a whole."""

    def __init__(self, index: int, call_id: str, names: Collection[str]) -> None:
        self._names = names
        self._arguments = ArgumentsReader(index, call_id)
        self._nesting = Nesting()
        self._text = ""
        """What is still to be looked at: the head, or what comes behind the arguments."""

    @property
    def has_begun(self) -> bool:
        return self._arguments.has_begun

    def push(self, text: str, events: list[CallEvent]) -> str | None:
        if self._arguments.has_ended:
            return self._tail(text, events)
        if self.has_begun:
            return self._through_arguments(text, events)
        self._text += text
        if (head := read_head(self._text, self._names)) is None:
            return self._whole(text, events)
        name, start = head
        self._arguments.begin(name, events)
        text, self._text = self._text[start:], ""
        return self._through_arguments(text, events)

    def finish(self, events: list[CallEvent]) -> None:
        self._arguments.end(events)

    def _through_arguments(self, text: str, events: list[CallEvent]) -> str | None:
        rest = self._arguments.push(text, events)
        return None if rest is None else self._tail(rest, events)

    def _tail(self, text: str, events: list[CallEvent]) -> str | None:
        """To the object's own bracket, over keys that come after; a bracket left out ends it, too."""
        self._text += text
        rest = self._text.lstrip()
        if not rest:
            return None
        if rest[0] == ",":
            end = _closed(rest)
            if end is None:
                return None
        else:
            end = 1 if rest[0] == "}" else 0
        self._arguments.end(events)
        return rest[end:]

    def _whole(self, text: str, events: list[CallEvent]) -> str | None:
        end = self._nesting.end_of(text)
        if end is None:
            return None
        name, arguments = read_call(self._text[: len(self._text) - len(text) + end], self._names)
        self._arguments.begin(name, events)
        events += [
            CallArguments(self._arguments.index, arguments),
            CallEnd(self._arguments.index, is_complete=True),
        ]
        return text[end:]


_NAMED = re.compile(
    r"\s{0,64}(?P<name>[A-Za-z0-9_.-]{1,256})(?:\[CALL_ID\][^\[\]{}]*)?(?:\[ARGS\])?\s{0,64}(?=\{)"
)
_NAMED_SO_FAR = re.compile(r"\s{0,64}[A-Za-z0-9_.-]{0,256}(?:\[[A-Z_\]]*[^{}]{0,256})?")


class NamedReader:
    """`f[ARGS]{...}`"""

    def __init__(self, index: int, call_id: str, names: Collection[str]) -> None:
        self._names = names
        self._arguments = ArgumentsReader(index, call_id)
        self._head = ""

    @property
    def has_begun(self) -> bool:
        return self._arguments.has_begun

    def push(self, text: str, events: list[CallEvent]) -> str | None:
        if not self.has_begun:
            self._head += text
            head = _NAMED.match(self._head)
            if head is None:
                if not _NAMED_SO_FAR.fullmatch(self._head):
                    raise NoCall
                return None
            if head["name"] not in self._names:
                raise NoCall
            self._arguments.begin(head["name"], events)
            text = self._head[head.end() :]
        rest = self._arguments.push(text, events)
        if rest is not None:
            self._arguments.end(events)
        return rest

    def finish(self, events: list[CallEvent]) -> None:
        self._arguments.end(events)


def _closed(text: str) -> int | None:
    nesting = Nesting()
    nesting.depth = 1
    return nesting.end_of(text)
