"""An end for connections whose client doesn't read: closed, they would stay open until it did."""

import asyncio

LONGEST_BLOCK_S = 60.0
"""Longer than a stream waits for its reader (event_stream.py), who is told why."""


class ReaderWatch:
    """Of one connection. Looks from time to time whether anything of what waits for the client has gone."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._num_waiting = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Nothing is to be written before the watch ends, or it would be taken for unread."""
        if self._timer is None:
            self._look_later()

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_later(self) -> None:
        self._num_waiting = self._transport.get_write_buffer_size()
        if self._num_waiting:
            self._timer = self._loop.call_later(LONGEST_BLOCK_S, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._transport.get_write_buffer_size() < self._num_waiting:
            self._look_later()
        else:
            self._transport.abort()
