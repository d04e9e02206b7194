"""Cancelling a response that any gateway process may be making.

Processes call to each other over the channel layer: "cancel this", "I have it", "it has ended". Nothing of an
answer goes that way.
"""

import asyncio
import contextlib
import secrets
from dataclasses import dataclass, field
from typing import Any

import structlog
from channels.layers import get_channel_layer
from redis.exceptions import RedisError

from fleet.cancelling import cancelled
from gateway.responses.running import RunningResponses
from tenants.errors import store_unavailable

log = structlog.get_logger("gateway")

GROUP = "octavo-gateways"
FOUND_CEILING_S = 1.0
"""Until the process that makes it has said so."""
ENDED_CEILING_S = 10.0
PAUSE_S = 1.0


@dataclass
class Call:
    found: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class CancelCalls:
    """Belongs to one event loop."""

    def __init__(self, running: RunningResponses) -> None:
        self._running = running
        self._layer: Any = get_channel_layer()
        self._channel = ""
        self.listening = asyncio.Event()
        self._calls: dict[str, Call] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._listen())

    async def stop(self) -> None:
        for task in (self._task, *self._answering):
            if task is not None:
                await cancelled(task)

    async def cancel(self, tenant_id: str, response_id: str) -> bool:
        """Whether some process was making it; it has ended then. Raises STORE_UNAVAILABLE."""
        making = self._running.find(tenant_id, response_id)
        if making is not None:
            making.cancel()
            await making.ended.wait()
            return True
        return await self._ask_others(tenant_id, response_id)

    async def _ask_others(self, tenant_id: str, response_id: str) -> bool:
        number, call = secrets.token_hex(8), Call()
        self._calls[number] = call
        wanted = {"tenant": tenant_id, "response": response_id, "reply_to": self._channel, "call": number}
        try:
            await self._layer.group_send(GROUP, {"type": "cancel", **wanted})
            async with asyncio.timeout(FOUND_CEILING_S):
                await call.found.wait()
            async with asyncio.timeout(ENDED_CEILING_S):
                await call.ended.wait()
        except TimeoutError:
            return call.found.is_set()
        except (RedisError, OSError) as error:
            raise store_unavailable() from error
        finally:
            del self._calls[number]
        return True

    # what others say

    async def _listen(self) -> None:
        while True:
            try:
                self._channel = await self._layer.new_channel()
                await self._layer.group_add(GROUP, self._channel)
                self.listening.set()
                while True:
                    self._heed(await self._layer.receive(self._channel))
            except (RedisError, OSError) as error:
                log.warning("channel_layer_lost", error=str(error))
                await asyncio.sleep(PAUSE_S)

    def _heed(self, message: dict[str, Any]) -> None:
        if message["type"] == "cancel":
            task = asyncio.create_task(self._obey(message))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        elif call := self._calls.get(message["call"]):
            (call.found if message["type"] == "found" else call.ended).set()

    async def _obey(self, message: dict[str, Any]) -> None:
        making = self._running.find(message["tenant"], message["response"])
        if making is None:
            return
        making.cancel()
        with contextlib.suppress(RedisError, OSError):
            await self._layer.send(message["reply_to"], {"type": "found", "call": message["call"]})
            await making.ended.wait()
            await self._layer.send(message["reply_to"], {"type": "ended", "call": message["call"]})
