"""What a person sees while something long goes on: one line a stage, rewritten where it is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

WIDTH = 100
PLAIN_INTERVAL_S = 10.0
"""Without a terminal, news of a stage that goes on is printed at most this often."""


class Stage:
    """One line of progress. `say` replaces what it shows."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._started = self._said_at = time.monotonic()
        self._live = sys.stdout.isatty()
        self._line = ""
        self._draw("...")

    def say(self, note: str) -> None:
        if self._live:
            self._draw(f"{self._seconds():.0f} s  {note}")
        elif time.monotonic() - self._said_at > PLAIN_INTERVAL_S:
            self._said_at = time.monotonic()
            self._draw(f"{self._seconds():.0f} s  {note}")

    def end(self, outcome: str) -> None:
        self._draw(outcome)
        if self._live:
            _write("\n")

    def done(self) -> None:
        self.end(f"done in {self._seconds():.1f} s")

    def _seconds(self) -> float:
        return time.monotonic() - self._started

    def _draw(self, text: str) -> None:
        line = f"  {self.title:<22} {text}"[:WIDTH].rstrip()
        if line == self._line:
            return
        self._line = line
        _write(f"\r\033[K{line}" if self._live else f"{line}\n")


@contextmanager
def stage(title: str) -> Iterator[Stage]:
    """A stage that ends with its time, or with `failed` or `stopped` when the block raises."""
    shown = Stage(title)
    try:
        yield shown
    except BaseException as end:
        shown.end("failed" if isinstance(end, Exception) else "stopped")
        raise
    shown.done()


def say(text: str = "") -> None:
    _write(f"{text}\n")


def _write(text: str) -> None:
    """A reader who has gone away, or a closed terminal, is no reason to stop what goes on."""
    with suppress(OSError):
        sys.stdout.write(text)
        sys.stdout.flush()
