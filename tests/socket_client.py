"""A plain WebSocket client of /v1/responses, for tests."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from websockets.sync.client import ClientConnection, connect

from http_service import Service

CEILING_S = 60.0


class Socket:
    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    def send(self, message: Any) -> None:
        self.connection.send(json.dumps(message) if isinstance(message, dict | list) else message)

    def create(self, model: str, text: str = "Hello", **fields: Any) -> None:
        self.send({"type": "response.create", "model": model, "input": text, **fields})

    def receive(self) -> dict[str, Any]:
        return dict(json.loads(self.connection.recv(timeout=CEILING_S)))

    def until(self, *kinds: str, stream_id: str | None = None) -> list[dict[str, Any]]:
        """All messages up to the first of these kinds (on that stream, if one is named)."""
        seen = []
        while True:
            seen.append(self.receive())
            if seen[-1]["type"] in kinds and (stream_id is None or seen[-1].get("stream_id") == stream_id):
                return seen


def socket_url(service: Service) -> str:
    return service.base_url.replace("http", "ws", 1) + "/v1/responses"


@contextmanager
def opened(service: Service, **options: Any) -> Iterator[Socket]:
    headers = {"authorization": f"Bearer {service.key}"}
    options = {"additional_headers": headers, "compression": None, **options}
    with connect(socket_url(service), **options) as connection:
        yield Socket(connection)


ENDINGS = ("response.completed", "response.incomplete", "response.failed", "error")
