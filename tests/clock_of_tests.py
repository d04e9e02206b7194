"""The quotas' scripts in a real Redis, but with a clock that a test moves."""

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
import redis

from quotas import reservations
from quotas.script_calls import Script

CLOCK = "octavo:test:clock"
MICROSECONDS = 1_000_000


class MovableClock:
    """Microseconds. Starts far ahead: Redis expires keys by its own clock."""

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client
        self.now_us = int(datetime(2100, 1, 10, tzinfo=UTC).timestamp()) * MICROSECONDS
        self.advance(0)

    @property
    def now(self) -> float:
        return self.now_us / MICROSECONDS

    def advance(self, microseconds: int) -> None:
        self.now_us += microseconds
        seconds, rest = divmod(self.now_us, MICROSECONDS)
        self._redis.hset(CLOCK, mapping={"s": seconds, "us": rest})


@contextmanager
def moved_by_hand(client: redis.Redis) -> Iterator[MovableClock]:
    """Scripts that this process runs meanwhile read the movable clock."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("RESERVE", "SETTLE", "RESTORE"):
            patch.setattr(reservations, name, _on_movable_clock(getattr(reservations, name)))
        yield MovableClock(client)


def _on_movable_clock(script: Script) -> Script:
    """Nor do its rates expire by the real clock, which knows nothing of the other."""
    moved = Script.__new__(Script)
    moved.source = script.source.replace("redis.call('TIME')", f"redis.call('HMGET', '{CLOCK}', 's', 'us')")
    moved.source = moved.source.replace("redis.call('PEXPIRE', key, lasts_ms)", "")
    moved.sha = hashlib.sha1(moved.source.encode(), usedforsecurity=False).hexdigest()
    return moved


class Loop:
    """An event loop for tests that aren't coroutines."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()

    def run(self, work):  # type: ignore[no-untyped-def]
        return self._loop.run_until_complete(work)

    def close(self) -> None:
        self._loop.close()
