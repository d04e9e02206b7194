"""Shares reach every engine: as it connects, and as they change."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import redis as blocking
from redis.asyncio import Redis

from fleet import tenant_shares
from fleet.fleet import Fleet
from fleet.tenant_shares import TenantShares
from inference_engine.contract.requests import SetTenantShares, TenantShare
from polling import until
from quotas.services import clear_limit, set_limit
from quotas.store import async_redis
from stand_ins.scripted_engine import ScriptedEngine
from tenants.services import create_tenant, update_tenant

InThread = Callable[..., Awaitable[Any]]

pytestmark = pytest.mark.usefixtures("transactional_db")


@pytest.fixture
async def shares(fleet: Fleet, loop_store: blocking.Redis) -> AsyncIterator[TenantShares]:
    shares = TenantShares(async_redis(), fleet.sessions)
    yield shares
    await shares.stop()


def told(engine: ScriptedEngine) -> dict[str, TenantShare]:
    """What the engine knows after all messages so far."""
    known: dict[str, TenantShare] = {}
    for message in engine.got(SetTenantShares):
        assert isinstance(message, SetTenantShares)
        known |= message.shares
    return known


async def test_all_when_it_connects_and_changes_within_a_second(
    engine: ScriptedEngine, redis: "Redis[Any]", fleet: Fleet, shares: TenantShares, in_thread: InThread
) -> None:
    heavy = await in_thread(create_tenant, "Heavy", weight=4.0)
    plain = await in_thread(create_tenant, "Plain")
    assert tenant_shares.POLL_INTERVAL_S < 0.5
    shares.start()
    await engine.publish(redis)
    await until(lambda: told(engine))
    assert told(engine) == {str(heavy.pk): TenantShare(weight=4.0)}

    await in_thread(update_tenant, plain, weight=2.0)
    limit = await in_thread(set_limit, plain, "queued", 7)
    expected = TenantShare(weight=2.0, max_queued_requests=7)
    await until(lambda: told(engine).get(str(plain.pk)) == expected)

    await in_thread(update_tenant, heavy, weight=1.0)
    await in_thread(clear_limit, limit)
    await until(lambda: told(engine).get(str(heavy.pk)) == TenantShare())
    await until(lambda: told(engine).get(str(plain.pk)) == TenantShare(weight=2.0))


async def test_without_a_change_nothing_is_read_or_sent(
    engine: ScriptedEngine,
    redis: "Redis[Any]",
    fleet: Fleet,
    shares: TenantShares,
    in_thread: InThread,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tenant_shares, "READ_AGAIN_S", 600.0)
    await in_thread(create_tenant, "Heavy", weight=4.0)
    await engine.publish(redis)
    await until(fleet.is_ready)
    await shares.look()
    await until(lambda: told(engine))
    monkeypatch.setattr(tenant_shares, "_read_shares", lambda: pytest.fail("read again"))
    for _ in range(3):
        await shares.look()
    assert len(engine.got(SetTenantShares)) == 1


async def test_a_lost_hint_is_made_up_for(
    engine: ScriptedEngine,
    redis: "Redis[Any]",
    fleet: Fleet,
    shares: TenantShares,
    in_thread: InThread,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tenant_shares, "READ_AGAIN_S", 0.0)
    await engine.publish(redis)
    await until(fleet.is_ready)
    await shares.look()
    await in_thread(create_tenant, "Heavy", weight=4.0)  # raises no epoch
    await shares.look()
    await until(lambda: [share.weight for share in told(engine).values()] == [4.0])
