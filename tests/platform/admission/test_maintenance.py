"""Maintenance: nothing new comes in, what runs goes on."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis
from django.core.management import call_command

from admission import maintenance
from admission.facts import RequestFacts
from admission.gate import gate
from api_keys.principal import Principal
from audit.models import AuditRecord
from inference_engine.contract.codes import Code
from tenants.errors import Denied
from usage.models import Ending

InThread = Callable[..., Awaitable[Any]]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "GOOD_FOR_S", 0.0)


async def test_new_requests_are_refused_until_it_ends(
    at_once: None,
    loop_store: redis.Redis,
    principal: Principal,
    facts: Callable[..., RequestFacts],
    in_thread: InThread,
) -> None:
    async with gate(principal, facts("before")) as admission:
        await in_thread(call_command, "maintenance", "begin", message="back at noon")
        with pytest.raises(Denied) as caught:
            async with gate(principal, facts("during")):
                pytest.fail("the gate let it pass")
        assert (caught.value.code, caught.value.message) == (Code.MAINTENANCE, "back at noon")
        admission.finish(Ending.FINISHED)
    await in_thread(call_command, "maintenance", "end")
    async with gate(principal, facts("after")) as admission:
        admission.finish(Ending.FINISHED)
    actions = await in_thread(lambda: list(AuditRecord.objects.values_list("action", flat=True)))
    assert [each for each in actions if "maintenance" in each] == ["maintenance.end", "maintenance.begin"]


async def test_it_is_seen_within_a_second(
    loop_store: redis.Redis, principal: Principal, facts: Callable[..., RequestFacts], in_thread: InThread
) -> None:
    assert maintenance.GOOD_FOR_S < 1.0
    await in_thread(maintenance.begin_maintenance, "no")
    try:
        assert await maintenance.maintenance_message() == "no"
    finally:
        await in_thread(maintenance.end_maintenance)


async def test_a_redis_that_lost_it_is_told_again(
    at_once: None, loop_store: redis.Redis, transactional_db: None, in_thread: InThread
) -> None:
    await in_thread(maintenance.begin_maintenance, "back at noon")
    loop_store.delete(maintenance.KEY)
    assert await maintenance.maintenance_message() == "back at noon"
    assert loop_store.get(maintenance.KEY) == b"back at noon"
    await in_thread(maintenance.end_maintenance)
    loop_store.delete(maintenance.KEY)
    assert await maintenance.maintenance_message() is None
    loop_store.set(maintenance.KEY, "a publication that was overtaken")
    await in_thread(maintenance.publish_maintenance)
    assert await maintenance.maintenance_message() is None


async def test_a_burst_asks_once(
    loop_store: redis.Redis, transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_asked = 0

    async def count() -> str:
        nonlocal num_asked
        num_asked += 1
        return ""

    monkeypatch.setattr(maintenance, "_told_message", count)
    assert await asyncio.gather(*(maintenance.maintenance_message() for _ in range(50))) == [None] * 50
    assert num_asked == 1
