"""The application driven over ASGI without a server: what it receives and sends is in the test's hands."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from gateway.transport.exchange import Exchange


class Client:
    """One request, and the messages that answer it."""

    def __init__(
        self,
        method: str = "POST",
        path: str = "/v1/chat/completions",
        headers: dict[str, str] | None = None,
    ) -> None:
        pairs = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        self.scope = {"type": "http", "method": method, "path": path, "headers": pairs}
        self.sent: list[dict[str, Any]] = []
        self.incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.may_send = asyncio.Event()
        self.may_send.set()

    def gives(self, *pieces: bytes) -> "Client":
        """The whole body, in pieces."""
        for index, piece in enumerate(pieces):
            message = {"type": "http.request", "body": piece, "more_body": index < len(pieces) - 1}
            self.incoming.put_nowait(message)
        return self

    def leaves(self) -> None:
        self.incoming.put_nowait({"type": "http.disconnect"})

    def stops_reading(self) -> None:
        self.may_send.clear()

    async def receive(self) -> dict[str, Any]:
        return await self.incoming.get()

    async def send(self, message: dict[str, Any]) -> None:
        await self.may_send.wait()
        self.sent.append(message)

    def exchange(self) -> Exchange:
        return Exchange(self.scope, self.receive, self.send)  # type: ignore[arg-type]

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])

    @property
    def error(self) -> dict[str, Any]:
        return dict(msgspec.json.decode(self.body)["error"])


@pytest.fixture
def client() -> Callable[..., Client]:
    return Client
