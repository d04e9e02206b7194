"""One connection to Redis for many calls: written as they come, answered in that order.

redis-py opens it, with all that belongs to that: address, TLS, password, the greeting. From then on no task
and no pool stands between the socket and whoever waits; on a busy event loop each of them would cost an
answer one more turn.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import hiredis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import InvalidResponse, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError


class Command(Protocol):
    """What a line carries."""

    sent_at: float

    def packed(self) -> bytes:
        """As Redis reads it."""

    def answered(self, answer: Any) -> None:
        """With a ResponseError where Redis refused it."""


OnLost = Callable[[Sequence[Any], RedisError], None]


class RedisLine(asyncio.Protocol):
    """Until it is lost; then `on_lost` is called, once, with the commands that have no answer."""

    def __init__(self, writer: asyncio.StreamWriter, timeout_s: float, on_lost: OnLost) -> None:
        self._writer = writer  # may close its transport when it goes
        self._transport = writer.transport
        self._timeout_s = timeout_s
        self._on_lost: OnLost | None = on_lost
        self._unanswered: deque[Command] = deque()
        self._reader = hiredis.Reader(protocolError=InvalidResponse, replyError=ResponseError)
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    async def open(cls, connection: AbstractConnection, timeout_s: float, on_lost: OnLost) -> "RedisLine":
        """Take over a connection that isn't open yet. Raises RedisError, OSError."""
        await connection.connect()
        writer, connection._reader, connection._writer = connection._writer, None, None
        if writer is None or writer.transport.is_closing():
            raise RedisConnectionError("Redis closed the connection at once")
        line = cls(writer, timeout_s, on_lost)
        writer.transport.set_protocol(line)
        return line

    def send(self, commands: Sequence[Command]) -> None:
        now = time.monotonic()
        for command in commands:
            command.sent_at = now
        self._unanswered.extend(commands)
        if self._transport.is_closing():
            self._lose(RedisConnectionError("Redis has closed the connection"))
            return
        self._transport.write(b"".join([command.packed() for command in commands]))
        if self._timer is None:
            self._watch(self._timeout_s)

    def close(self) -> list[Command]:
        """Those that have no answer; `on_lost` won't be called."""
        self._on_lost = None
        if self._timer is not None:
            self._timer.cancel()
        self._transport.abort()
        unanswered, self._unanswered = list(self._unanswered), deque()
        return unanswered

    # what the event loop calls

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        try:
            while (answer := self._reader.gets()) is not False:
                if not isinstance(answer, hiredis.PushNotification):  # which answers nobody
                    self._unanswered.popleft().answered(answer)
        except (InvalidResponse, IndexError) as error:  # it isn't Redis that speaks, or it speaks unasked
            self._lose(RedisConnectionError(f"not an answer of Redis: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose(RedisConnectionError(str(exc or "Redis closed the connection")))

    def _watch(self, wait_s: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._check)

    def _check(self) -> None:
        """Of the oldest: the others were sent after it."""
        self._timer = None
        if not self._unanswered:
            return
        left_s = self._unanswered[0].sent_at + self._timeout_s - time.monotonic()
        if left_s > 0:
            self._watch(left_s)
        else:
            self._lose(RedisTimeoutError(f"no answer within {self._timeout_s:g} s"))

    def _lose(self, error: RedisError) -> None:
        on_lost = self._on_lost
        if on_lost is not None:
            on_lost(self.close(), error)
