"""Strings that know which of their characters are the chat template's own words.

Everything else is somebody's data: what a client sent, what a tool answered, or what an operation not known
here made of either. Ownership is only ever kept by an operation that can place each character, and is lost
otherwise, so the fall-back is always the safe one: text without an owner never becomes a control token.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, SupportsIndex

Spans = tuple[tuple[int, int], ...]


class TrackedText(str):
    """`spans`: sorted, disjoint, never adjacent [start, end) ranges of characters that the template owns."""

    __slots__ = ("spans",)
    spans: Spans

    def __new__(cls, text: object = "", spans: Spans = ()) -> "TrackedText":
        self = super().__new__(cls, text)
        self.spans = spans
        return self

    @classmethod
    def owned(cls, text: str) -> "TrackedText":
        return cls(text, ((0, len(text)),) if text else ())

    @classmethod
    def concat(cls, parts: Iterable[object], max_chars: int | None = None) -> "TrackedText":
        """Raises OverflowError once the result has more than `max_chars` characters."""
        texts: list[str] = []
        spans: list[tuple[int, int]] = []
        length = 0
        for part in parts:
            text = str(part)
            texts.append(text)
            if isinstance(text, TrackedText):
                _append_spans(spans, text.spans, length)
            length += len(text)
            if max_chars is not None and length > max_chars:
                raise OverflowError(f"more than {max_chars} characters")
        return cls("".join(texts), tuple(spans))

    def __str__(self) -> "TrackedText":
        return self

    def __add__(self, other: str) -> "TrackedText":
        return TrackedText.concat((self, other)) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: str) -> "TrackedText":
        return TrackedText.concat((other, self)) if isinstance(other, str) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> "TrackedText":
        return TrackedText.concat([self] * int(times.__index__()))

    __rmul__ = __mul__

    def __iter__(self) -> Iterator[str]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        """Tracked, except for a slice with a step."""
        if not isinstance(key, slice):
            index = range(len(self))[key]
            return self._part(index, index + 1)
        start, stop, step = key.indices(len(self))
        return self._part(start, max(start, stop)) if step == 1 else super().__getitem__(key)

    def strip(self, chars: str | None = None, /) -> "TrackedText":
        return self.lstrip(chars).rstrip(chars)

    def lstrip(self, chars: str | None = None, /) -> "TrackedText":
        return self._part(len(self) - len(super().lstrip(chars)), len(self))

    def rstrip(self, chars: str | None = None, /) -> "TrackedText":
        return self._part(0, len(super().rstrip(chars)))

    def removeprefix(self, prefix: str, /) -> "TrackedText":
        return self._part(len(self) - len(super().removeprefix(prefix)), len(self))

    def removesuffix(self, suffix: str, /) -> "TrackedText":
        return self._part(0, len(super().removesuffix(suffix)))

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return self._pieces(super().split(sep, maxsplit), len(sep or ""))

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return self._pieces(super().rsplit(sep, maxsplit), len(sep or ""))

    def splitlines(self, keepends: bool = False) -> list[str]:
        lines = self._pieces(super().splitlines(True), 0)
        return lines if keepends else [line[: len(str.splitlines(line)[0])] for line in lines]

    def partition(self, sep: str, /) -> tuple[str, str, str]:
        before, found, after = self._pieces(list(super().partition(sep)), 0)
        return before, found, after

    def rpartition(self, sep: str, /) -> tuple[str, str, str]:
        before, found, after = self._pieces(list(super().rpartition(sep)), 0)
        return before, found, after

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> str:
        """Replacing the empty string loses track."""
        if not old:
            return super().replace(old, new, count)
        return TrackedText.join(TrackedText(new, _spans_of(new)), self.split(old, count))

    def join(self, parts: Iterable[str], /) -> "TrackedText":
        pieces: list[str] = []
        for part in parts:
            if pieces:
                pieces.append(self)
            pieces.append(part)
        return TrackedText.concat(pieces)

    def upper(self) -> "TrackedText":
        return self._recased(str.upper)

    def lower(self) -> "TrackedText":
        return self._recased(str.lower)

    def title(self) -> "TrackedText":
        return self._recased(str.title)

    def capitalize(self) -> "TrackedText":
        return self._recased(str.capitalize)

    def _recased(self, change: Callable[[str], str]) -> "TrackedText":
        """Where a letter becomes several, its neighbours can't be placed any more."""
        text = change(str.__str__(self))
        return TrackedText(text, self.spans if len(text) == len(self) else ())

    def _part(self, start: int, stop: int) -> "TrackedText":
        spans = [
            (max(a, start) - start, min(b, stop) - start) for a, b in self.spans if a < stop and b > start
        ]
        return TrackedText(super().__getitem__(slice(start, stop)), tuple(spans))

    def _pieces(self, texts: list[str], gap: int) -> list[str]:
        """`texts` occur in this order, `gap` characters apart (0: nothing or white space between them)."""
        pieces: list[str] = []
        position = 0
        for text in texts:
            start = self.find(text, position)
            pieces.append(self._part(start, start + len(text)))
            position = start + len(text) + gap
        return pieces


def _spans_of(text: Any) -> Spans:
    return text.spans if isinstance(text, TrackedText) else ()


def _append_spans(spans: list[tuple[int, int]], added: Spans, offset: int) -> None:
    for start, end in added:
        if spans and spans[-1][1] == start + offset:
            spans[-1] = (spans[-1][0], end + offset)
        else:
            spans.append((start + offset, end + offset))
