"""Bodies that are too large or too slow end before Django stores them."""

import asyncio
import errno
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from control_plane.asgi import console_application
from control_plane.body_limit import MAX_BODY_BYTES, BodyLimit
from gateway.transport import draining

MAX = 10
Message = dict[str, Any]


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """As Django does: the whole body first; nobody is answered who has left."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


async def exchange(
    pieces: list[bytes], headers: list[tuple[bytes, bytes]], *, application: Any, is_whole: bool = True
) -> tuple[int, bytes]:
    async def arriving() -> AsyncIterator[Message]:
        for number, piece in enumerate(pieces):
            more = number < len(pieces) - 1 or not is_whole
            yield {"type": "http.request", "body": piece, "more_body": more}
        await asyncio.Event().wait()

    messages, sent = arriving(), []

    async def receive() -> Message:
        return await anext(messages)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/v1/tenants/",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), *headers],
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
    }
    await asyncio.wait_for(application(scope, receive, send), 30)
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent[1:])


async def test_what_fits_passes() -> None:
    limit = BodyLimit(echo, MAX)
    assert await exchange([b"12345", b"67890"], [(b"content-length", b"10")], application=limit) == (
        200,
        b"1234567890",
    )


@pytest.mark.parametrize(
    ("pieces", "headers"),
    [
        ([b""], [(b"content-length", b"11")]),
        ([b""], [(b"content-length", b"9" * 5000)]),
        ([b"12345", b"678901"], []),
        ([b"1"] * 11, [(b"content-length", b"3")]),
    ],
)
async def test_what_is_too_large_is_413(
    pieces: list[bytes], headers: list[tuple[bytes, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draining, "LONGEST_PAUSE_S", 0.05)
    status, body = await exchange(pieces, headers, application=BodyLimit(echo, MAX))
    assert (status, json.loads(body)["error"]["code"]) == (413, "body_too_large")


async def test_what_comes_too_slowly_is_408() -> None:
    limit = BodyLimit(echo, MAX, timeout_s=0.05)
    status, body = await exchange([b"1"], [], application=limit, is_whole=False)
    assert (status, json.loads(body)["error"]["code"]) == (408, "request_timeout")


async def test_django_stands_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draining, "LONGEST_PAUSE_S", 0.05)
    status, body = await exchange([b"x" * 65536] * 17, [], application=console_application)
    assert MAX_BODY_BYTES < 65536 * 17
    assert (status, json.loads(body)["error"]["code"]) == (413, "body_too_large")


async def test_a_body_that_cant_be_stored_is_503_in_our_shape() -> None:
    async def on_a_full_disk(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        raise OSError(errno.ENOSPC, "No space left on device")

    limited = BodyLimit(on_a_full_disk, MAX, 5.0)
    status, body = await exchange([b"a", b"b"], [], application=limited)
    assert (status, json.loads(body)["error"]["code"]) == (503, "store_unavailable")
