"""/metrics is for whoever knows the token, or, without one, for this machine."""

from typing import Any

import pytest

from gateway.application import Gateway
from gateway.services import Services

SCOPE = {"type": "http", "method": "GET", "path": "/metrics", "query_string": b"", "http_version": "1.1"}


async def get(address: str, token: str = "") -> tuple[int, bytes]:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    gateway = Gateway()
    gateway.services = Services()
    headers = [(b"authorization", f"Bearer {token}".encode())] if token else []
    await gateway({**SCOPE, "headers": headers, "client": (address, 1)}, receive, send)
    return int(sent[0]["status"]), sent[1]["body"]


@pytest.mark.parametrize(
    ("address", "status"), [("127.0.0.1", 200), ("::1", 200), ("192.0.2.1", 401), ("elsewhere", 401)]
)
async def test_without_a_token_it_answers_to_this_machine(address: str, status: int) -> None:
    assert (await get(address))[0] == status


@pytest.mark.parametrize(("token", "status"), [("", 401), ("wrong", 401), ("the token", 200)])
async def test_a_token_is_asked_for_on_loopback_too(settings: Any, token: str, status: int) -> None:
    settings.OCTAVO_METRICS_TOKEN = "the token"
    assert (await get("127.0.0.1", token))[0] == status


async def test_the_time_in_the_gate_is_among_the_figures() -> None:
    assert b"\noctavo_gate_seconds_count " in (await get("127.0.0.1"))[1]
