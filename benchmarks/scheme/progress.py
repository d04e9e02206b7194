"""A bar on the terminal, of tokens and steps done."""

import sys
from types import TracebackType
from typing import Self

WIDTH = 40
EVERY = 50


class Progress:
    def __init__(self, total: int) -> None:
        self._total = max(1, total)
        self._done = 0
        self.stage = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._draw()
        print(file=sys.stderr)

    def advance(self) -> None:
        self._done += 1
        if self._done % EVERY == 0:
            self._draw()

    def _draw(self) -> None:
        share = min(1.0, self._done / self._total)
        bar = "#" * round(WIDTH * share)
        print(f"\r[{bar:<{WIDTH}}] {share:4.0%} {self.stage:<24}", end="", file=sys.stderr, flush=True)
