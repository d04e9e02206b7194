"""uvicorn's HTTP protocol with limits on what comes before the application: bytes and time of a head.

uvicorn (on httptools) has neither, and answers what it can't parse in plain text; here it is OpenAI's shape.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from gateway.transport.plain_answer import plain_answer
from gateway.transport.reader_watch import ReaderWatch
from gateway.transport.request_parser import RequestParser
from gateway.transport.unframed import without_chunks
from inference_engine.contract.codes import Code
from tenants.errors import Denied

MAX_HEAD_BYTES = 64 * 1024
"""Of a head that comes in pieces; exchange.py has the tighter limit, on whole ones."""
HEAD_TIMEOUT_S = 10.0
MAX_PIPELINED = 4


class GuardedHttpProtocol(HttpToolsProtocol):
    _head_bytes = 0
    _is_in_head = True
    _has_begun = False
    _head_timer: asyncio.TimerHandle | None = None
    _running: RequestResponseCycle | None = None

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.parser = RequestParser(self)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._reader = ReaderWatch(transport, self.loop)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._reader.end()
        super().connection_lost(exc)
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = (
                True  # uvicorn tells the newest cycle only, which may still be queued
            )
            self._running.message_event.set()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        is_old = cycle.scope["http_version"] == "1.0"
        super()._start_asgi_task(cycle, without_chunks(app, cycle) if is_old else app)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._is_in_head or self.transport.is_closing():
            return
        self._head_bytes += len(data)
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(
                Denied(Code.HEADERS_TOO_LARGE, f"The headers are larger than {MAX_HEAD_BYTES} bytes.")
            )

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reader.begin()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._reader.end()

    def on_response_complete(self) -> None:
        self._reader.begin()
        super().on_response_complete()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._reader.end()
        self._has_begun = True
        self._expect_head()

    def ignores_upgrade(self) -> bool:
        """The parser then tells of this request once more, without the upgrade it asked for."""
        is_tunnel = self.parser.get_method() == b"CONNECT"
        return self.parser.should_upgrade() and not is_tunnel and not self._should_upgrade()

    def on_message_complete(self) -> None:
        if not self.ignores_upgrade():
            super().on_message_complete()

    def on_headers_complete(self) -> None:
        if self.ignores_upgrade():
            return
        self._is_in_head = False
        self._stop_timer()
        super().on_headers_complete()
        if 0 < len(self.pipeline) <= MAX_PIPELINED:
            self.flow.resume_reading()  # or nobody would notice that the client of the first one has left

    def send_400_response(self, msg: str) -> None:
        self._refuse(Denied(Code.INVALID_REQUEST, msg))

    def _unsupported_upgrade_warning(self) -> None:
        """No line in the log for what any client can ask; the request is answered as plain HTTP."""

    def _expect_head(self) -> None:
        self._head_bytes, self._is_in_head = 0, True
        self._stop_timer()
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self._head_is_late)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        if not self._has_begun:
            self.transport.close()  # a connection opened ahead of need; nobody waits for an answer
            return
        message = f"The request's headers did not arrive within {HEAD_TIMEOUT_S:g} seconds."
        self._refuse(Denied(Code.REQUEST_TIMEOUT, message))

    def _refuse(self, denied: Denied) -> None:
        """Only before the application has seen anything of the request; the connection ends."""
        self._stop_timer()
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(plain_answer(denied))
        self.transport.close()
