"""Notices a worker for bulk jobs that lives and does nothing, and a clock that no longer strikes.

A worker may lose its place at the broker when Redis comes back: its process is well, and tasks wait for ever.
The worker tells in Redis how many tasks it runs and has taken (platform/bulk/execution/worker_pulse.py).
"""

import asyncio
import contextlib
import json
import signal
import time
from dataclasses import dataclass

from redis.asyncio import Redis
from redis.exceptions import RedisError

from operations.child_process import ChildProcess

LOOK_EVERY_S = 1.0
PULSE_KEY = "octavo:bulk:pulse:"
SWEPT_KEY = "octavo:bulk:swept_at"
QUEUE_KEY = "octavo:celery:bulk"
SILENT_AFTER_S = 20.0
"""Without a pulse, from a process that has had one."""
IDLE_AFTER_S = 20.0
"""With a free place, while a task waits and none is taken."""
STOPPED_AFTER_S = 60.0
"""Without a sweep, while the worker could have made one."""


@dataclass(frozen=True, slots=True)
class Pulse:
    at: float = 0.0
    num_places: int = 0
    num_busy: int = 0
    num_taken: int = 0

    @property
    def has_place(self) -> bool:
        return self.num_busy < self.num_places


@dataclass(frozen=True, slots=True)
class Seen:
    """What Redis says at one moment."""

    pid: int | None
    pulse: Pulse | None
    num_queued: int
    swept_at: float


class Judge:
    """Pure: what was seen, and when, tells who is to be restarted."""

    def __init__(self, now: float) -> None:
        self._pulse_at = self._moved_at = self._struck_at = now
        self._pid: int | None = None
        self._num_taken = -1
        self._swept_at = 0.0

    def worker_is_stuck(self, seen: Seen, now: float) -> bool:
        if seen.pid != self._pid or seen.pulse is not None:
            self._pulse_at = now
        pulse = seen.pulse or Pulse()
        is_moving = pulse.num_taken != self._num_taken or not seen.num_queued or not pulse.has_place
        if seen.pid != self._pid or (is_moving and seen.pulse is not None):
            self._moved_at = now
        has_lived = self._pid == seen.pid and self._num_taken >= 0
        self._pid = seen.pid
        self._num_taken = pulse.num_taken if seen.pulse else self._num_taken
        if seen.pid is None or not has_lived:
            return False
        return now - self._pulse_at > SILENT_AFTER_S or now - self._moved_at > IDLE_AFTER_S

    def clock_has_stopped(self, seen: Seen, now: float) -> bool:
        could = seen.pulse is not None and seen.pulse.has_place and not seen.num_queued
        if seen.swept_at != self._swept_at or not could:
            self._swept_at, self._struck_at = seen.swept_at, now
        return now - self._struck_at > STOPPED_AFTER_S

    def forgive(self, now: float) -> None:
        """Nobody can tell how it was meanwhile."""
        self._pulse_at = self._moved_at = self._struck_at = now
        self._num_taken = -1


class BulkWatch:
    def __init__(self, redis: Redis, broker: Redis, worker: ChildProcess, beat: ChildProcess) -> None:
        self.num_kills = 0
        self._redis, self._broker = redis, broker
        self._worker, self._beat = worker, beat
        self._watched_s = 0.0
        """A stall of the whole machine is no more of it than two looks: the others stood still as well."""
        self._judge = Judge(self._watched_s)

    async def run(self) -> None:
        while True:
            began = time.monotonic()
            try:
                self._act(await self._look(), self._watched_s)
            except (RedisError, OSError):
                self._judge.forgive(self._watched_s)
            await asyncio.sleep(LOOK_EVERY_S)
            self._watched_s += min(time.monotonic() - began, 2 * LOOK_EVERY_S)

    async def _look(self) -> Seen:
        pid = self._worker.pid
        told = await self._redis.get(f"{PULSE_KEY}{pid}")
        swept_at = await self._redis.get(SWEPT_KEY)
        return Seen(pid, _pulse(told), int(await self._broker.llen(QUEUE_KEY)), float(swept_at or 0.0))

    def _act(self, seen: Seen, now: float) -> None:
        if self._judge.worker_is_stuck(seen, now):
            self._kill(self._worker, now)
        elif self._judge.clock_has_stopped(seen, now):
            self._kill(self._beat, now)

    def _kill(self, child: ChildProcess, now: float) -> None:
        """The supervisor starts it again."""
        child.signal(signal.SIGKILL)
        self._judge.forgive(now)
        self.num_kills += 1


def _pulse(told: bytes | str | None) -> Pulse | None:
    """None: there is none, or only one that has stopped."""
    if told is None:
        return None
    with contextlib.suppress(ValueError, TypeError):
        pulse = Pulse(**json.loads(told))
        return pulse if time.time() - pulse.at < SILENT_AFTER_S / 2 else None
    return None
