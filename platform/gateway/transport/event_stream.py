"""The event stream of one answer: pings while nothing comes, and an end for readers who don't read."""

import asyncio

from gateway.runs.chunks import PING
from gateway.transport.exchange import Exchange

MAX_BLOCKED_TICKS = 6


class EventStream:
    def __init__(self, exchange: Exchange, ping: bytes = PING) -> None:
        self._exchange = exchange
        self._ping_data = ping
        self._num_sent = 0
        self._num_sent_before = 0
        self._is_sending = False
        self._num_blocked_ticks = 0

    async def start(self) -> None:
        await self._exchange.start_stream()
        self._exchange.stream = self

    async def send(self, data: bytes) -> None:
        """Blocks while the client's connection is full."""
        self._num_sent += 1
        self._is_sending = True
        await self._exchange.send_piece(data)
        self._is_sending = False

    async def end(self, data: bytes) -> None:
        self._exchange.stream = None
        await self._exchange.end_stream(data)

    async def tick(self, tick_s: float) -> bool:
        """As Ticking has it."""
        is_idle = self._num_sent == self._num_sent_before
        self._num_sent_before = self._num_sent
        if not is_idle:
            self._num_blocked_ticks = 0
            return True
        if not self._is_sending and await self._ping(tick_s):
            return True
        self._num_blocked_ticks += 1
        return self._num_blocked_ticks < MAX_BLOCKED_TICKS

    async def _ping(self, ceiling_s: float) -> bool:
        try:
            async with asyncio.timeout(ceiling_s):
                await self._exchange.send_piece(self._ping_data)
        except TimeoutError:
            return False
        return True
