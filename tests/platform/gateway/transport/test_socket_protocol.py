"""What is no WebSocket handshake, over real sockets and a real uvicorn."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from gateway.transport.http_protocol import GuardedHttpProtocol
from gateway.transport.socket_protocol import GuardedSocketProtocol
from served_application import served

KEY = b"sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
VERSION = b"sec-websocket-version: 13\r\n"


async def application(scope, receive, send) -> None:  # type: ignore[no-untyped-def]
    assert scope["type"] == "websocket"
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": 1000})


@pytest.fixture
async def port() -> AsyncIterator[int]:
    async with served(application, http=GuardedHttpProtocol, ws=GuardedSocketProtocol) as port:
        yield port


async def answer_to(port: int, method: bytes, headers: bytes, num_bytes: int = -1) -> bytes:
    """All of it, unless so many bytes are enough."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    upgrade = b"host: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"
    writer.write(method + b" / HTTP/1.1\r\n" + upgrade + headers + b"\r\n")
    async with asyncio.timeout(10):
        answer = await reader.read(num_bytes)
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        (b"GET", VERSION),
        (b"GET", KEY),
        (b"GET", VERSION + b"sec-websocket-key: short\r\n"),
        (b"GET", VERSION + KEY + KEY),
        (b"GET", KEY + b"sec-websocket-version: 8\r\n"),
        (b"GET", KEY + VERSION + b"a: b\r\n" * 200),
        (b"POST", KEY + VERSION),
    ],
    ids=["no key", "no version", "short key", "two keys", "old version", "many headers", "post"],
)
async def test_it_is_refused_in_our_shape(port: int, method: bytes, headers: bytes) -> None:
    head, _, body = (await answer_to(port, method, headers)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n")
    assert b"x-request-id: req_" in head
    assert json.loads(body)["error"]["code"] == "invalid_request"


async def test_a_proper_one_is_accepted(port: int) -> None:
    assert (await answer_to(port, b"GET", KEY + VERSION, 13)) == b"HTTP/1.1 101 "
