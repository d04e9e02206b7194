"""The one entry, spoken to as a server would: who answers which path, and how a process ends."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import redis

from admission.facts import RequestFacts
from admission.gate import gate
from api_keys.principal import Principal
from control_plane.asgi import application
from usage.models import Ending

Message = dict[str, Any]

NOT_FOUND_HEADERS = {
    b"content-length",
    b"content-type",
    b"openai-processing-ms",
    b"x-request-id",
    b"x-should-retry",
}


async def get(path: str, server: object = ("127.0.0.1", 8000)) -> tuple[int, dict[bytes, bytes], bytes]:
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
        "server": server,
        "client": ("127.0.0.1", 5000),
    }
    sent: list[Message] = []
    asked = False

    async def receive() -> Message:
        nonlocal asked
        if asked:
            await asyncio.Event().wait()
        asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    await application(scope, receive, send)
    start = next(message for message in sent if message["type"] == "http.response.start")
    return start["status"], dict(start["headers"]), b"".join(m.get("body", b"") for m in sent)


async def live(during: Callable[[], Awaitable[None]]) -> list[str]:
    """A process's whole life; the types of what the application said."""
    said: asyncio.Queue[str] = asyncio.Queue()
    heard: asyncio.Queue[Message] = asyncio.Queue()

    async def send(message: Any) -> None:
        said.put_nowait(message["type"])

    task = asyncio.create_task(application({"type": "lifespan", "asgi": {}}, heard.get, send))
    heard.put_nowait({"type": "lifespan.startup"})
    words = [await asyncio.wait_for(said.get(), 30)]
    await during()
    heard.put_nowait({"type": "lifespan.shutdown"})
    words.append(await asyncio.wait_for(said.get(), 30))
    await asyncio.wait_for(task, 30)
    return words


async def test_people_get_django_and_programs_the_hot_path(
    loop_store: redis.Redis, transactional_db: None
) -> None:
    status, headers, _ = await get("/admin/login/")
    assert status == 200 and b"Content-Security-Policy" in headers
    status, headers, body = await get("/static/admin/css/base.css")
    assert status == 200 and len(body) > 1000

    async def during() -> None:
        status, headers, _ = await get("/health")
        assert status == 200 and b"Content-Security-Policy" not in headers
        status, _, body = await get("/v1/nothing")
        assert status == 404 and b'"error"' in body

    assert await live(during) == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_the_console_is_not_there_for_other_addresses(transactional_db: None) -> None:
    for path in ("/admin/login/", "/static/admin/css/base.css", "/", "/nothing"):
        status, headers, body = await get(path, server=("10.1.2.3", 8000))
        assert (status, json.loads(body)["error"]["code"]) == (404, "not_found"), path
        assert set(headers) == NOT_FOUND_HEADERS


async def test_a_process_ends_with_its_settlements_made(
    loop_store: redis.Redis, principal: Principal, facts: Callable[..., RequestFacts]
) -> None:
    async def during() -> None:
        async with gate(principal, facts()) as admission:
            admission.finish(Ending.FINISHED)

    await live(during)
    streams = [name for name in loop_store.scan_iter("octavo:{b:*}:ledger") if loop_store.xlen(name)]
    assert len(streams) == 1 and not list(loop_store.scan_iter("octavo:{b:*}:reservation:*"))
