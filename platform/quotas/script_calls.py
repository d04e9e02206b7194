"""Calls of Lua scripts, all on one connection.

The first call of a turn of the event loop is written at once, those that follow in the same turn some at a
time: a burst costs few writes, and Redis is at work while the rest of it is made.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import hiredis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from quotas.redis_line import RedisLine

Value = str | int | float | bytes

WRITTEN_TOGETHER = 16


class Script:
    """One Lua file of quotas/lua/."""

    def __init__(self, name: str) -> None:
        self.source = (Path(__file__).parent / "lua" / f"{name}.lua").read_text(encoding="utf-8")
        self.sha = hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()


class Call:
    """A command of a line (quotas/redis_line.py)."""

    __slots__ = ("_command", "_send_again", "answer", "is_repeated", "script", "sent_at")

    def __init__(
        self, script: Script, keys: Sequence[str], args: Sequence[Value], send_again: "Callable[[Call], None]"
    ) -> None:
        self.script = script
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.sent_at = 0.0
        self.is_repeated = False
        """It was sent on a connection that was lost."""
        self._command: tuple[Value, ...] = ("EVALSHA", script.sha, len(keys), *keys, *args)
        self._send_again = send_again

    def packed(self) -> bytes:
        return hiredis.pack_command(self._command)  # type: ignore[arg-type]  # of any length

    def answered(self, answer: Any) -> None:
        if self.answer.done():
            return  # whoever asked was cancelled
        if not isinstance(answer, Exception):
            self.answer.set_result(answer)
        elif self._command[0] == "EVALSHA" and str(answer).startswith("NOSCRIPT"):
            self._command = ("EVAL", self.script.source, *self._command[2:])
            self._send_again(self)
        else:
            self.answer.set_exception(answer)


class ScriptCalls:
    """Of one event loop. A call on a connection that was lost is sent once more: all scripts allow that."""

    def __init__(self, make_connection: Callable[[], AbstractConnection], timeout_s: float) -> None:
        self._make_connection = make_connection
        self._timeout_s = timeout_s
        self._line: RedisLine | None = None
        self._opening: asyncio.Task[None] | None = None
        self._queue: list[Call] = []
        self._is_gathering = False

    def run(self, script: Script, keys: Sequence[str], args: Sequence[Value]) -> Awaitable[Any]:
        """Its answer; raises RedisError, OSError. Calls are carried out in the order they are made in."""
        call = Call(script, keys, args, self._send)
        self._send(call)
        return call.answer

    def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
        unanswered: list[Any] = [] if self._line is None else self._line.close()
        _fail([*unanswered, *self._queue], RedisConnectionError("closed"))

    def _send(self, call: Call) -> None:
        self._queue.append(call)
        if not self._is_gathering:
            self._is_gathering = True
            asyncio.get_running_loop().call_soon(self._gathered)
            self._flush()
        elif len(self._queue) >= WRITTEN_TOGETHER:
            self._flush()

    def _gathered(self) -> None:
        self._is_gathering = False
        self._flush()

    def _flush(self) -> None:
        if not self._queue or self._opening is not None:
            return
        if self._line is None:
            self._opening = asyncio.create_task(self._open())
            return
        calls, self._queue = self._queue, []
        self._line.send(calls)

    async def _open(self) -> None:
        try:
            self._line = await RedisLine.open(self._make_connection(), self._timeout_s, self._lost)
        except Exception as error:  # whatever it is: nobody else would ever answer them
            calls, self._queue = self._queue, []
            _fail(calls, error)
        finally:
            self._opening = None
        self._flush()

    def _lost(self, calls: Sequence[Call], error: RedisError) -> None:
        self._line = None
        if isinstance(error, RedisConnectionError):
            again = [call for call in calls if not call.is_repeated]
            calls = [call for call in calls if call.is_repeated]
            self._queue[:0] = again
            for call in again:
                call.is_repeated = True
        _fail(calls, error)
        self._flush()


def _fail(calls: Sequence[Call], error: Exception) -> None:
    for call in calls:
        call.answered(error)
