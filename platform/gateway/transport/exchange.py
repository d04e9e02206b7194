"""One HTTP request and its answer, over plain ASGI."""

import asyncio
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Protocol

import msgspec

from gateway.errors import OPENAI_ERRORS, SHAPES, ErrorShape, error_headers
from gateway.transport.draining import drain
from inference_engine.contract.codes import Code
from tenants.errors import Denied

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MAX_HEADER_BYTES = 32 * 1024
MAX_CLIENT_REQUEST_ID = 512
DRAINED_BODIES = 8
"""Of the largest size: so much of a body that is too large is read, and dropped, before it is refused."""
_PRINTABLE = re.compile(rb"[\x21-\x7e]+")
_JSON = "application/json"


class ClientGone(Exception):
    """Nobody is left to answer."""


class Ticking(Protocol):
    """An answer that lasts."""

    async def tick(self, tick_s: float) -> bool:
        """To be called every `tick_s`, as long as it answers True. False: the client has stopped reading."""


class Exchange:
    """Reads the request and writes the answer; knows the headers that every answer carries."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query: str = scope.get("query_string", b"").decode("latin-1")
        self.id = secrets.token_hex(12)
        self.request_id = f"req_{self.id}"
        self.is_started = False
        self.errors: ErrorShape = OPENAI_ERRORS
        self.stream: Ticking | None = None
        """While events are being sent."""
        self._client: tuple[str, int] | None = scope.get("client")
        self._headers: list[tuple[bytes, bytes]] = list(scope["headers"])
        self._receive = receive
        self._send = send
        self._started_at = time.monotonic()
        self._extra: dict[str, str] = {}

    # the request

    @property
    def address(self) -> str:
        """Of the client, or of the proxy in front; empty over a unix socket."""
        return (self._client or ("",))[0]

    def header(self, name: bytes) -> bytes | None:
        """The first one of that name; `name` in lower case."""
        return next((value for key, value in self._headers if key == name), None)

    @property
    def num_header_bytes(self) -> int:
        return sum(len(name) + len(value) + 4 for name, value in self._headers)

    async def read_body(self, max_bytes: int, timeout_s: float) -> bytes:
        """Raises Denied (BODY_TOO_LARGE, REQUEST_TIMEOUT, INVALID_REQUEST), ClientGone."""
        await self._check_announced(max_bytes)
        try:
            async with asyncio.timeout(timeout_s):
                return await self._body(max_bytes)
        except TimeoutError:
            message = f"The body did not arrive within {timeout_s:g} seconds."
            raise self._last_answer(Denied(Code.REQUEST_TIMEOUT, message)) from None

    async def _check_announced(self, max_bytes: int) -> None:
        denied = self._denied_by_head(max_bytes)
        if denied is None:
            return
        if self.header(b"expect") is None:  # who expects to be told first has not begun to send
            await drain(self._receive, DRAINED_BODIES * max_bytes)
        raise denied

    def _denied_by_head(self, max_bytes: int) -> Denied | None:
        encoding = self.header(b"content-encoding")
        if encoding not in (None, b"", b"identity"):
            return self._last_answer(Denied(Code.INVALID_REQUEST, "Compressed bodies are not accepted."))
        length = self.header(b"content-length")
        if length is not None and length.isdigit() and int(length[:19]) > max_bytes:
            return self._too_large(max_bytes)
        return None

    async def _body(self, max_bytes: int) -> bytes:
        pieces: list[bytes] = []
        size, is_more = 0, True
        while is_more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            is_more = message.get("more_body", False)
            if size > max_bytes:
                if is_more:
                    await drain(self._receive, DRAINED_BODIES * max_bytes)
                raise self._too_large(max_bytes)
        return b"".join(pieces)

    def _too_large(self, max_bytes: int) -> Denied:
        message = f"The body is larger than the {max_bytes} bytes accepted here."
        return self._last_answer(Denied(Code.BODY_TOO_LARGE, message))

    def _last_answer(self, denied: Denied) -> Denied:
        """The rest of the body won't be read, so the connection can't be used again."""
        denied.headers["connection"] = "close"
        return denied

    async def wait_gone(self) -> None:
        """Until the client has gone away. Only once the whole body was read."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    # the answer

    def add_headers(self, headers: Mapping[str, str]) -> None:
        """For whatever answer there will be."""
        self._extra.update(headers)

    async def send_json(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> None:
        await self.send_bytes(status, msgspec.json.encode(body), headers)

    async def send_bytes(self, status: int, data: bytes, headers: Mapping[str, str] | None = None) -> None:
        await self._start(
            status, {"content-type": _JSON, "content-length": str(len(data)), **(headers or {})}
        )
        await self._send({"type": "http.response.body", "body": b"" if self.method == "HEAD" else data})

    async def send_error(self, denied: Denied) -> None:
        body = self.errors.body(denied, self.request_id)
        await self.send_json(SHAPES[denied.code].status, body, error_headers(denied))

    async def start_stream(self) -> None:
        headers = {
            "content-type": "text/event-stream; charset=utf-8",
            "cache-control": "no-cache",
            "x-accel-buffering": "no",
        }
        await self._start(200, headers)

    async def send_piece(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end_stream(self, data: bytes = b"") -> None:
        await self._send({"type": "http.response.body", "body": data})

    async def _start(self, status: int, headers: Mapping[str, str]) -> None:
        elapsed_ms = round((time.monotonic() - self._started_at) * 1000)
        every = {"x-request-id": self.request_id, "openai-processing-ms": str(elapsed_ms), **self._extra}
        pairs = [(name.encode(), value.encode()) for name, value in (every | dict(headers)).items()]
        if client_id := self._client_request_id():
            pairs.append((b"x-client-request-id", client_id))
        self.is_started = True
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})

    def _client_request_id(self) -> bytes | None:
        """Echoed only if it is harmless."""
        value = self.header(b"x-client-request-id")
        if value is None or len(value) > MAX_CLIENT_REQUEST_ID or not _PRINTABLE.fullmatch(value):
            return None
        return value
