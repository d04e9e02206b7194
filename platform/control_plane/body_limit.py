"""A cap on the bytes and the time of a request's body, ahead of Django, which stores a whole body first."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec
import structlog

from gateway.errors import SHAPES, error_headers, error_object
from gateway.transport.draining import drain
from inference_engine.contract.codes import Code
from tenants.errors import Denied, store_unavailable

log = structlog.get_logger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

MAX_BODY_BYTES = 1024 * 1024
BODY_TIMEOUT_S = 30.0
DRAIN_BYTES = 512 * 1024 * 1024


class BodyLimit:
    """Over the cap or too late, the application sees its client leave and the client gets 413 or 408; where a
    body can't be stored, 503."""

    def __init__(
        self,
        application: Application,
        max_bytes: int = MAX_BODY_BYTES,
        timeout_s: float = BODY_TIMEOUT_S,
    ) -> None:
        self._application = application
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if _declared_length(scope) > self._max_bytes:
            await drain(receive, DRAIN_BYTES)
            await self._refuse_large(send)
            return
        body = _Body(receive, self._max_bytes, asyncio.get_running_loop().time() + self._timeout_s)
        answer = _Answer(send)
        try:
            await self._application(scope, body.receive, answer.send)
        except OSError as error:
            if answer.has_begun:
                raise
            log.warning("body_not_stored", path=scope["path"], error=str(error))
            await drain(receive, DRAIN_BYTES)
            await _refuse(send, store_unavailable())
            return
        if answer.has_begun:
            return
        if body.is_large:
            await drain(receive, DRAIN_BYTES)
            await self._refuse_large(send)
        elif body.is_late:
            message = f"The body did not arrive within {self._timeout_s:g} seconds."
            await _refuse(send, Denied(Code.REQUEST_TIMEOUT, message))

    async def _refuse_large(self, send: Send) -> None:
        message = f"The body is larger than the {self._max_bytes} bytes accepted here."
        await _refuse(send, Denied(Code.BODY_TOO_LARGE, message))


class _Body:
    def __init__(self, receive: Receive, max_bytes: int, ends_at: float) -> None:
        self._receive = receive
        self._left = max_bytes
        self._ends_at = ends_at
        self._is_whole = False
        self.is_large = False
        self.is_late = False

    async def receive(self) -> Message:
        if self._is_whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._ends_at):
                message = await self._receive()
        except TimeoutError:
            self.is_late = True
            return {"type": "http.disconnect"}
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            self._is_whole = not message.get("more_body", False)
        if self._left < 0:
            self.is_large = True
            return {"type": "http.disconnect"}
        return message


class _Answer:
    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False

    async def send(self, message: Message) -> None:
        self.has_begun = True
        await self._send(message)


def _declared_length(scope: Message) -> int:
    """0 where none is declared; what is no number is left to the server."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value[:19])
    return 0


async def _refuse(send: Send, denied: Denied) -> None:
    """The connection ends: the rest of the body may still be on its way."""
    body = msgspec.json.encode(error_object(denied))
    named = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "connection": "close",
        "x-request-id": f"req_{secrets.token_hex(12)}",
        **error_headers(denied),
    }
    headers = [(name.encode(), value.encode()) for name, value in named.items()]
    await send({"type": "http.response.start", "status": SHAPES[denied.code].status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
