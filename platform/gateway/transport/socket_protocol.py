"""uvicorn's WebSocket protocol with an end for connections whose client neither reads nor leaves."""

import asyncio
import logging
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidHandshake
from websockets.http11 import Request

from gateway.transport.plain_answer import plain_answer
from inference_engine.contract.codes import Code
from tenants.errors import Denied

LINGER_S = 10.0
"""For a close that waits in the connection's buffer."""

_silent = logging.getLogger("gateway.socket_protocol")
_silent.setLevel(logging.CRITICAL)  # no line in the log for what any client can send; ours are structured


class GuardedSocketProtocol(WebSocketsSansIOProtocol):
    _linger: asyncio.TimerHandle | None = None

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.logger = self.conn.logger = _silent

    def handle_connect(self, event: Request) -> None:
        """The handshake is looked at here first: uvicorn would refuse it in plain text."""
        try:
            self.conn.process_request(event)
        except InvalidHandshake as error:
            self._refuse(f"This is no WebSocket handshake: {error}.")
        else:
            super().handle_connect(event)

    def data_received(self, data: bytes) -> None:
        """What websockets can't read, such as more than 128 headers, would otherwise never be answered."""
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            self._refuse("This is no WebSocket handshake that is read here.")

    def _refuse(self, message: str) -> None:
        self.handshake_initiated = self.handshake_complete = self.close_sent = True
        self.transport.write(plain_answer(Denied(Code.INVALID_REQUEST, message)))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._linger is not None:
            self._linger.cancel()
        super().connection_lost(exc)

    def on_task_complete(self, task: "asyncio.Task[None]") -> None:
        super().on_task_complete(task)
        self._end_soon()

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self._end_soon()

    def _end_soon(self) -> None:
        if self._linger is None:
            self._linger = self.loop.call_later(LINGER_S, self.transport.abort)

    def handle_ping(self) -> None:
        """Who sends pings and reads no pongs would have us keep them all."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.transport.abort()

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            self.handshake_complete = True  # refused: uvicorn would take it for forgotten
