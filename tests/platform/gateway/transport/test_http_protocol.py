"""Limits on a request's head, over real sockets and a real uvicorn."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from gateway.transport import http_protocol, reader_watch
from gateway.transport.http_protocol import MAX_HEAD_BYTES, GuardedHttpProtocol
from served_application import served

OK = b"HTTP/1.1 200 OK"
HEAD_TIMEOUT_S = 60.0
"""Longer than any stall; tests of slow heads have less."""


async def application(scope, receive, send) -> None:  # type: ignore[no-untyped-def]
    if scope["path"] == "/slow":
        while (await receive())["type"] != "http.disconnect":
            pass
        left.append(scope["path"])
        return
    body, is_more = b"", True
    while is_more:
        message = await receive()
        body, is_more = body + message.get("body", b""), message.get("more_body", False)
    if scope["path"] == "/stream":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for piece in (b"one ", b"two ", b""):
            await send({"type": "http.response.body", "body": piece, "more_body": piece != b""})
        return
    answer = BIG if scope["path"] == "/big" else body or b"ok"
    length = str(len(answer)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": answer})


left: list[str] = []
BIG = b"x" * (32 << 20)
"""More than both ends of a connection keep for a client that doesn't read."""


@pytest.fixture
async def port(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    monkeypatch.setattr(http_protocol, "HEAD_TIMEOUT_S", HEAD_TIMEOUT_S)
    left.clear()
    async with served(application, http=GuardedHttpProtocol, ws="none") as port:
        yield port


async def answer_to(port: int, *pieces: bytes) -> bytes:
    """Everything that comes back until the server closes, or until the answer is whole."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.suppress(ConnectionError):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
    async with asyncio.timeout(10):
        with contextlib.suppress(ConnectionError):
            return await reader.read()
    return b""


def error_in(answer: bytes) -> tuple[bytes, str]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0], str(json.loads(body)["error"]["code"])


async def test_plain_requests_pass_and_connections_are_kept(port: int) -> None:
    one = b"GET /a HTTP/1.1\r\nhost: x\r\n\r\n"
    answer = await answer_to(port, one, one + b"GET /b HTTP/1.1\r\nconnection: close\r\nhost: x\r\n\r\n")
    assert answer.count(OK) == 3


@pytest.mark.parametrize(
    "raw", [b"nonsense\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /\x00 HTTP/1.1\r\n\r\n"]
)
async def test_what_is_not_http_gets_an_error_of_our_shape(port: int, raw: bytes) -> None:
    answer = await answer_to(port, raw)
    assert error_in(answer) == (b"HTTP/1.1 400 Bad Request", "invalid_request")
    assert b"\r\nx-request-id: req_" in answer and b"\r\nx-should-retry: false\r\n" in answer


@pytest.mark.parametrize("kept", [b"", b"connection: keep-alive\r\n"])
async def test_a_stream_for_http_1_0_has_no_chunks_and_ends_with_the_connection(
    port: int, kept: bytes
) -> None:
    head, _, body = (await answer_to(port, b"GET /stream HTTP/1.0\r\n" + kept + b"\r\n")).partition(
        b"\r\n\r\n"
    )
    assert body == b"one two "
    assert b"connection: close" in head and b"transfer-encoding" not in head
    assert (await answer_to(port, b"GET /x HTTP/1.0\r\n\r\n")).endswith(
        b"content-length: 2\r\nconnection: close\r\n\r\nok"
    )
    modern = await answer_to(port, b"GET /stream HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    assert b"transfer-encoding: chunked" in modern and modern.endswith(b"0\r\n\r\n")


async def test_endless_headers_are_cut_off(port: int) -> None:
    pieces = [b"GET / HTTP/1.1\r\n"] + [b"a: " + b"x" * 8000 + b"\r\n"] * (MAX_HEAD_BYTES // 8000 + 4)
    assert b"431" in (await answer_to(port, *pieces)).split(b"\r\n")[0]


async def test_an_endless_header_value_is_cut_off(port: int) -> None:
    pieces = [b"GET / HTTP/1.1\r\na: "] + [b"x" * 8000] * (MAX_HEAD_BYTES // 8000 + 4)
    assert b"431" in (await answer_to(port, *pieces)).split(b"\r\n")[0]


async def test_slow_heads_are_given_up(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_TIMEOUT_S", 0.3)
    assert error_in(await answer_to(port, b"GET / HTTP/1.1\r\na:"))[1] == "request_timeout"
    assert await answer_to(port) == b""


async def test_a_slow_body_is_not_a_slow_head(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its head is there in time, and the time passes."""
    monkeypatch.setattr(http_protocol, "HEAD_TIMEOUT_S", 0.3)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /slow HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.6):
            await reader.read()
    writer.close()


@pytest.mark.parametrize("kept", [b"", b"connection: close\r\n"])
async def test_who_reads_nothing_of_an_answer_is_left(
    port: int, kept: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_watch, "LONGEST_BLOCK_S", 0.3)
    lost, connection_lost = asyncio.Event(), GuardedHttpProtocol.connection_lost

    def heard(self: GuardedHttpProtocol, exc: Exception | None) -> None:
        connection_lost(self, exc)
        lost.set()

    monkeypatch.setattr(GuardedHttpProtocol, "connection_lost", heard)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /big HTTP/1.1\r\nhost: x\r\n" + kept + b"\r\n")
    await reader.readexactly(1)
    reader._transport.pause_reading()  # type: ignore[attr-defined]
    async with asyncio.timeout(30):
        await lost.wait()
    writer.close()


async def test_a_client_that_pipelines_and_leaves_is_noticed(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n" * 2)
    await writer.drain()
    writer.close()
    async with asyncio.timeout(5):
        while "/slow" not in left:
            await asyncio.sleep(0.01)


async def test_an_upgrade_is_answered_as_plain_http(port: int) -> None:
    raw = b"GET /x HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(raw)
    async with asyncio.timeout(5):
        assert (await reader.readline()).startswith(OK)
    writer.close()


BODY = b'{"model": "m"}'
UPGRADES = (
    b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n"
)
LENGTH = b"content-length: %d\r\n\r\n" % len(BODY)
CHUNKED = b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
CLOSE = b"GET /b HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"


@pytest.mark.parametrize("framed", [LENGTH + BODY, CHUNKED], ids=["length", "chunked"])
@pytest.mark.parametrize("piece", [10_000, 7, 1])
async def test_a_body_behind_an_upgrade_that_is_ignored_is_read(port: int, framed: bytes, piece: int) -> None:
    """As Java's own client sends it, in whatever pieces it comes; what follows is the next request."""
    raw = b"POST /a HTTP/1.1\r\nhost: x\r\n" + UPGRADES + framed + CLOSE
    answer = await answer_to(port, *(raw[start : start + piece] for start in range(0, len(raw), piece)))
    assert answer.count(OK) == 2 and BODY in answer and answer.endswith(b"ok")


async def test_a_body_behind_an_upgrade_is_not_taken_for_a_request(port: int) -> None:
    hidden = b"GET /c HTTP/1.1\r\nhost: x\r\n\r\n"
    head = b"POST /a HTTP/1.1\r\nhost: x\r\n" + UPGRADES + b"content-length: %d\r\n\r\n" % len(hidden)
    answer = await answer_to(port, head, hidden, CLOSE)
    assert answer.count(OK) == 2 and hidden in answer


async def test_upgrades_in_a_row_are_all_answered(port: int) -> None:
    many = b"GET /x HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: h2c\r\n\r\n" * 50
    assert (await answer_to(port, many, CLOSE)).count(OK) == 51
