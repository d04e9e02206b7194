"""Calls of Lua scripts, gathered: those made within one turn of the event loop share a round trip.

A pool's connection, a write and a read cost more than the call itself; a burst pays for them once.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from redis.asyncio import Redis
from redis.exceptions import NoScriptError

Value = str | int | float | bytes

MAX_CALLS = 32
"""In one round trip: the first of them waits for the last."""


class Script:
    """One Lua file of quotas/lua/."""

    def __init__(self, name: str) -> None:
        self.source = (Path(__file__).parent / "lua" / f"{name}.lua").read_text(encoding="utf-8")
        self.sha = hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()


class Call(NamedTuple):
    script: Script
    keys: Sequence[str]
    args: Sequence[Value]
    answer: "asyncio.Future[Any]"


class ScriptCalls:
    """Of one client, and so of one event loop."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._calls: list[Call] = []
        self._trips: set[asyncio.Task[None]] = set()

    def run(self, script: Script, keys: Sequence[str], args: Sequence[Value]) -> Awaitable[Any]:
        """Its answer; raises RedisError, OSError."""
        loop = asyncio.get_running_loop()
        if not self._calls:
            loop.call_soon(self._send)
        call = Call(script, keys, args, loop.create_future())
        self._calls.append(call)
        return call.answer

    def _send(self) -> None:
        calls, self._calls = self._calls, []
        for start in range(0, len(calls), MAX_CALLS):
            trip = asyncio.create_task(self._trip(calls[start : start + MAX_CALLS]))
            self._trips.add(trip)
            trip.add_done_callback(self._trips.discard)

    async def _trip(self, calls: list[Call]) -> None:
        try:
            answers = await self._answers(calls)
            unknown = [call for call, answer in zip(calls, answers, strict=True) if _is_unknown(answer)]
            for script in {call.script for call in unknown}:
                await self._client.script_load(script.source)
            again = iter(await self._answers(unknown) if unknown else [])
            answers = [next(again) if _is_unknown(answer) else answer for answer in answers]
        except BaseException as error:
            answers = [error] * len(calls)
            if not isinstance(error, Exception):
                raise
        finally:
            for call, answer in zip(calls, answers, strict=True):
                _give(call.answer, answer)

    async def _answers(self, calls: list[Call]) -> list[Any]:
        async with self._client.pipeline(transaction=False) as pipeline:
            for call in calls:
                pipeline.evalsha(call.script.sha, len(call.keys), *call.keys, *call.args)
            return await pipeline.execute(raise_on_error=False)


def _is_unknown(answer: object) -> bool:
    return isinstance(answer, NoScriptError)


def _give(future: "asyncio.Future[Any]", answer: Any) -> None:
    if future.done():
        return  # whoever asked was cancelled
    if isinstance(answer, asyncio.CancelledError):
        future.cancel()
    elif isinstance(answer, BaseException):
        future.set_exception(answer)
    else:
        future.set_result(answer)
