"""A process that stops: its server cancels the open requests and waits for none of them."""

import asyncio
from typing import Any

import pytest

from gateway.application import Gateway

SCOPE = {"type": "http", "method": "POST", "path": "/v1/completions", "headers": [], "query_string": b""}


class Stopped:
    """In the services' place."""

    def __init__(self) -> None:
        self.was_answered: bool | None = None
        self.request: asyncio.Task[None] | None = None

    async def stop(self) -> None:
        assert self.request is not None
        self.was_answered = self.request.done()


async def test_the_engines_are_left_when_all_have_been_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request leaves its run slowly: it hears the engine's last word and is settled."""
    began = asyncio.Event()
    sent: list[Any] = []

    async def slow_to_leave(*_: object) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            for _turn in range(100):
                await asyncio.sleep(0)

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async def send(message: Any) -> None:
        sent.append(message)

    monkeypatch.setattr("gateway.application.find_endpoint", lambda *_: slow_to_leave)
    gateway, services = Gateway(), Stopped()
    gateway.services = services  # type: ignore[assignment]
    services.request = asyncio.create_task(gateway(SCOPE, receive, send))
    await began.wait()
    services.request.cancel()
    await gateway.shutdown()
    assert services.was_answered is True
    assert sent[0]["status"] == 503 and b"draining" in sent[1]["body"]
    assert services.request.exception() is None  # uvicorn would log a traceback for each open stream
