"""Sockets with nothing on them: withdrawn keys, age, readers that don't read. Redis and database are real."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import redis

from api_keys.authentication import authenticate
from api_keys.models import ApiKey
from api_keys.principal import Principal
from api_keys.services import revoke_key, rotate_key
from gateway.live import socket as socket_module
from gateway.live import watch as watch_module
from gateway.live.handshake import Opening
from gateway.live.socket import LiveSocket
from gateway.live.watch import SocketWatch
from tenants.errors import Denied
from tenants.models import Tenant, TenantStatus
from tenants.services import update_tenant

CEILING_S = 20.0


class Wire:
    """The client's end: what it was sent, and whether it reads."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self.closed = asyncio.Event()
        self.given_up = asyncio.Event()

    async def send(self, message: Any) -> None:
        await self.reads.wait()
        self.sent.append(message)
        if message["type"] == "websocket.close":
            self.closed.set()


@pytest.fixture
async def watch(loop_store: redis.Redis, principal: Principal) -> AsyncIterator[SocketWatch]:
    watch = SocketWatch(interval_s=0.02)
    yield watch
    await watch.stop()


def opened(watch: SocketWatch, principal: Principal) -> tuple[LiveSocket, Wire]:
    wire = Wire()
    opening = Opening(principal, None, "127.0.0.1")
    socket = LiveSocket(None, opening, wire.send, wire.given_up.set)  # type: ignore[arg-type]
    watch.add(socket)
    return socket, wire


async def closed_with(wire: Wire) -> int:
    async with asyncio.timeout(CEILING_S):
        await wire.closed.wait()
    return int(wire.sent[-1]["code"])


async def test_a_revoked_key_closes_its_sockets(
    watch: SocketWatch, principal: Principal, key_and_secret: tuple[ApiKey, str], in_thread: Any
) -> None:
    _, wire = opened(watch, principal)
    await in_thread(revoke_key, key_and_secret[0])
    assert await closed_with(wire) == 4401
    assert '"code":"invalid_api_key"' in wire.sent[-2]["text"]


async def test_a_rotated_secret_closes_its_sockets_and_no_others(
    watch: SocketWatch, key_and_secret: tuple[ApiKey, str], in_thread: Any
) -> None:
    key, old = key_and_secret
    _, wire_of_old = opened(watch, await authenticate(f"Bearer {old}"))
    _, new = await in_thread(rotate_key, key, grace=timedelta(hours=1))
    kept, wire_of_new = opened(watch, await authenticate(f"Bearer {new}"))
    await in_thread(rotate_key, key, grace=timedelta(hours=1))
    assert await closed_with(wire_of_old) == 4401
    epoch = (await in_thread(Tenant.objects.get)).policy_epoch
    async with asyncio.timeout(CEILING_S):
        while kept.principal.policy_epoch != epoch:
            await asyncio.sleep(0.01)
    assert not wire_of_new.sent


async def test_another_policy_is_taken_over_and_a_suspension_closes(
    watch: SocketWatch, principal: Principal, tenant: Tenant, in_thread: Any
) -> None:
    socket, wire = opened(watch, principal)
    await in_thread(update_tenant, tenant, max_output_tokens=77)
    async with asyncio.timeout(CEILING_S):
        while socket.principal.max_output_tokens != 77:
            await asyncio.sleep(0.01)
    assert not wire.sent
    await in_thread(update_tenant, tenant, status=TenantStatus.SUSPENDED)
    assert await closed_with(wire) == 4401


async def test_an_old_socket_is_told_and_closed(watch: SocketWatch, principal: Principal) -> None:
    socket, wire = opened(watch, principal)
    socket.opened_at -= watch_module.LONGEST_LIFE_S + 1
    assert await closed_with(wire) == 1000
    assert "60 minutes" in wire.sent[-2]["text"]


async def stuck_socket(watch: SocketWatch, principal: Principal) -> tuple[Wire, "asyncio.Task[None]"]:
    """It has been sending for too long, and the watch has seen it."""
    socket, wire = opened(watch, principal)
    wire.reads.clear()
    sending = asyncio.create_task(socket.send(b"{}"))
    await asyncio.sleep(0)
    assert socket.sending_since is not None
    socket.sending_since = time.monotonic() - watch_module.LONGEST_BLOCK_S - 1
    async with asyncio.timeout(CEILING_S):
        while not socket.is_closing:
            await asyncio.sleep(0.01)
    return wire, sending


async def test_a_reader_that_reads_again_is_told_why(
    watch: SocketWatch, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_module, "LAST_WORDS_S", CEILING_S)
    wire, sending = await stuck_socket(watch, principal)
    wire.reads.set()
    await sending
    assert await closed_with(wire) == 4408
    assert not wire.given_up.is_set()


async def test_a_reader_that_never_reads_is_given_up(
    watch: SocketWatch, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_module, "LAST_WORDS_S", 0.05)
    wire, sending = await stuck_socket(watch, principal)
    async with asyncio.timeout(CEILING_S):
        await wire.given_up.wait()
    assert not wire.sent
    sending.cancel()


async def test_one_tenant_gets_half_of_the_sockets(
    watch: SocketWatch, principal: Principal, settings: Any
) -> None:
    settings.OCTAVO_MAX_SOCKETS = 4
    sockets = []
    for _ in range(2):
        watch.check_room(principal)
        sockets.append(opened(watch, principal)[0])
    with pytest.raises(Denied):
        watch.check_room(principal)
    watch.drop(sockets[0])
    watch.check_room(principal)
