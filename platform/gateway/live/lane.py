"""The responses of one stream id on a socket: one at a time, in the order they were asked for."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from gateway.live.incoming import CreateMessage


@dataclass(slots=True)
class Job:
    message: CreateMessage
    number: str
    """Of the response, 24 hexadecimal digits."""
    num_bytes: int
    is_cancelled: bool = False


class Lane:
    def __init__(self, work: Callable[[Job], Awaitable[None]], on_empty: Callable[[], object]) -> None:
        self._work = work
        self._on_empty = on_empty
        self._waiting: deque[Job] = deque()
        self.running: Job | None = None
        self.task: asyncio.Task[None] | None = None

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    @property
    def num_waiting_bytes(self) -> int:
        return sum(job.num_bytes for job in self._waiting)

    def add(self, job: Job) -> None:
        self._waiting.append(job)
        if self.running is None:
            self._start_next()

    def clear(self) -> None:
        """What waits is not begun."""
        self._waiting.clear()

    def _start_next(self) -> None:
        self.running = self._waiting.popleft()
        self.task = asyncio.ensure_future(self._work(self.running))
        self.task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Future[None]") -> None:
        if not task.cancelled():
            task.exception()
        self.running = self.task = None
        if self._waiting:
            self._start_next()
        else:
            self._on_empty()
