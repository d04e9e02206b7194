"""Prompt lookup: what followed the last few tokens where they were before is a guess at what follows now.

    ... the quick brown fox jumps ...    the quick brown        last three known: guess `fox`, `jumps`
        --------------- ^^^^^^^^^        ---------------

The n-gram speculation of Saxena, "Prompt lookup decoding" (2023): no second model, and nothing but the
request's own tokens is looked at.
"""

from array import array
from collections.abc import Sequence

MAX_NGRAM = 4
MIN_NGRAM = 2
WINDOW = 16_384
"""Tokens back that are looked at: a search stays under some tenths of a millisecond."""
WIDTH = 4
"""Bytes of a token id."""


class PromptLookup:
    """The known tokens of one request, as bytes: searching those is one call into C."""

    def __init__(self) -> None:
        self._ids = bytearray()

    @property
    def num_ids(self) -> int:
        return len(self._ids) // WIDTH

    def append(self, token_ids: Sequence[int]) -> None:
        self._ids += array("I", token_ids).tobytes()

    def guess(self, count: int) -> list[int]:
        """At most `count` tokens: those behind the latest earlier place of the longest n-gram that ends the
        known ones. Where that place is nearer to the end than `count`, what lies between repeats."""
        after = self._place(MIN_NGRAM)
        if after is None or count < 1:
            return []
        for size in range(MAX_NGRAM, MIN_NGRAM, -1):
            longer = self._place(size)
            if longer is not None:
                after = longer
                break
        found = array("I", bytes(self._ids[after * WIDTH : (after + count) * WIDTH])).tolist()
        return (found * -(-count // len(found)))[:count]

    def _place(self, size: int) -> int | None:
        """Index behind the latest earlier place of the last `size` tokens."""
        ids, length = self._ids, size * WIDTH
        if len(ids) <= length:
            return None
        ngram, start, end = ids[-length:], max(0, len(ids) - WINDOW * WIDTH), len(ids) - WIDTH
        while (at := ids.rfind(ngram, start, end)) >= 0:
            if at % WIDTH == 0:
                return at // WIDTH + size
            end = at + length - 1
        return None
