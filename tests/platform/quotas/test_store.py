"""The client of the hot path: many at once, no Redis at all, a Redis that hangs, another run of Redis."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from inference_engine.contract.codes import Code
from quotas import store as quotas_store
from quotas.limits import Policy
from quotas.outcomes import Reserved
from quotas.reservations import Reservation
from quotas.store import async_redis, on_new_run, run_number
from reserving import reserve
from servers_of_tests import RedisServer
from tenants.errors import Denied

MakeReservation = Callable[..., Reservation]
MakePolicy = Callable[..., Policy]
HANG_CEILING_S = 30


async def test_a_burst_of_two_hundred_waits_for_sixteen_connections(server: RedisServer) -> None:
    answers = await asyncio.gather(*(async_redis().echo(str(i)) for i in range(200)))
    assert answers == [str(i).encode() for i in range(200)]
    clients = await async_redis().client_list()
    assert len(clients) <= quotas_store.MAX_CONNECTIONS


async def test_no_redis_is_a_denial(
    server: RedisServer, reservation: MakeReservation, policy: MakePolicy
) -> None:
    assert await reserve(reservation("a"), policy(), is_fresh=True)
    server.kill()
    with pytest.raises(Denied) as caught:
        await reserve(reservation("b"), policy(), is_fresh=True)
    assert (caught.value.code, caught.value.retry_after_s) == (Code.STORE_UNAVAILABLE, 1.0)
    server.start()
    assert isinstance(await reserve(reservation("b"), policy(), is_fresh=True), Reserved)


async def test_a_redis_that_hangs_does_not_hang_a_burst(
    server: RedisServer, reservation: MakeReservation, policy: MakePolicy, settings: Any
) -> None:
    settings.OCTAVO_REDIS_TIMEOUT_SECONDS = 0.3
    assert await reserve(reservation("a"), policy(), is_fresh=True)
    server.pause()
    started = time.monotonic()
    outcomes = await asyncio.gather(
        *(reserve(reservation(f"r{i}"), policy(), is_fresh=False) for i in range(100)),
        return_exceptions=True,
    )
    assert time.monotonic() - started < HANG_CEILING_S
    assert all(isinstance(outcome, Denied) for outcome in outcomes)
    server.resume()
    assert isinstance(await reserve(reservation("b"), policy(), is_fresh=False), Reserved)


async def test_a_new_run_is_noticed_with_the_first_new_connection(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[int] = []
    monkeypatch.setattr(quotas_store, "_run_listeners", [])
    on_new_run(lambda: heard.append(run_number()))
    await async_redis().ping()
    before = run_number()
    heard.clear()
    await asyncio.gather(*(async_redis().ping() for _ in range(50)))
    assert heard == []
    server.restart()
    await asyncio.gather(*(async_redis().ping() for _ in range(50)))
    assert heard == [before + 1] and run_number() == before + 1


async def test_scripts_survive_a_redis_that_forgot_them(
    server: RedisServer, reservation: MakeReservation, policy: MakePolicy
) -> None:
    assert await reserve(reservation("a"), policy(), is_fresh=True)
    await async_redis().script_flush()
    assert isinstance(await reserve(reservation("b"), policy(), is_fresh=False), Reserved)
