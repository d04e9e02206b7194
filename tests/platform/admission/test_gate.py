"""The one door: who comes in, and the one row that each leaves behind, however it leaves."""

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
import redis
from django.conf import settings as current_settings

from admission.admission import Admission
from admission.facts import FleetFacts, RequestFacts
from admission.gate import gate
from admission.settlement import finish_settlements
from api_keys.authentication import authenticate
from api_keys.models import ApiKey
from api_keys.principal import Principal
from api_keys.services import revoke_key, update_key
from inference_engine.contract.codes import Code
from quotas.limits import LimitKind, LimitRule, LimitScope
from tenants.errors import Denied
from tenants.models import Tenant
from tenants.services import suspend_tenant, update_tenant
from usage.models import Ending

InThread = Callable[..., Awaitable[Any]]
Facts = Callable[..., RequestFacts]
Rows = Callable[[], list[dict[str, str]]]
KeyAndSecret = tuple[ApiKey, str]


def limited_to(principal: Principal, **values: int) -> Principal:
    rules = (LimitRule(LimitScope.TENANT, LimitKind(kind), value) for kind, value in values.items())
    return replace(principal, limits=tuple(rules))


async def pass_gate(principal: Principal, facts: RequestFacts) -> Admission:
    async with gate(principal, facts) as admission:
        admission.finish(Ending.FINISHED, finish_reason="stop")
    await finish_settlements()
    return admission


async def refusal(principal: Principal, facts: RequestFacts, fleet: FleetFacts | None = None) -> Denied:
    with pytest.raises(Denied) as caught:
        async with gate(principal, facts, fleet):
            pytest.fail("the gate let it pass")
    await finish_settlements()
    return caught.value


def num_leases(store: redis.Redis) -> int:
    return sum(store.zcard(name) for name in store.scan_iter("octavo:{b:*}:leases:*"))  # type: ignore[misc]


async def test_one_request_leaves_one_row_with_what_it_used(
    loop_store: redis.Redis, principal: Principal, facts: Facts, rows: Rows
) -> None:
    mine = facts(user="u", metadata={"a": "b"}, max_tokens=5)
    async with gate(principal, mine, FleetFacts(1000, 1000)) as admission:
        assert (admission.request_id, admission.max_tokens) == ("r1", 5)
        assert loop_store.exists(admission.reservation_key) and num_leases(loop_store) == 3
        admission.record(prompt_tokens=7, cached_tokens=4, replica="one")
        admission.record(output_tokens=3, first_token_at=1.5, queue_ms=2.0)
        admission.record(output_tokens=5, overrun_tokens=1)
        admission.finish(Ending.FINISHED, finish_reason="length")
    await finish_settlements()

    (row,) = rows()
    assert {name: row[name] for name in ("request_id", "tenant_name", "key_name", "model", "user")} == {
        "request_id": "r1",
        "tenant_name": "Acme",
        "key_name": "alice's key",
        "model": "m",
        "user": "u",
    }
    used = [row[f"{name}_tokens"] for name in ("prompt", "cached", "output", "overrun")]
    assert used == ["7", "4", "5", "1"]
    assert (row["ending"], row["finish_reason"], row["source"]) == ("finished", "length", "authoritative")
    assert (row["replica"], row["first_token_at"], row["queue_ms"]) == ("one", "1.5", "2.0")
    assert num_leases(loop_store) == 0 and not loop_store.exists(admission.reservation_key)


class Boom(Exception):
    pass


@pytest.mark.parametrize(
    ("raised", "ending", "code"),
    [
        (asyncio.CancelledError(), "aborted", "client_gone"),
        (asyncio.CancelledError(Code.DRAINING), "aborted", "draining"),
        (GeneratorExit(), "aborted", "client_gone"),
        (Denied(Code.NO_READY_REPLICA, "none"), "failed", "no_ready_replica"),
        (Boom(), "failed", "internal_error"),
        (None, "failed", "internal_error"),  # a handler that says nothing
    ],
)
async def test_whatever_ends_a_request_is_in_its_row(
    principal: Principal, facts: Facts, rows: Rows, raised: BaseException | None, ending: str, code: str
) -> None:
    async def handle() -> None:
        async with gate(principal, facts()):
            if raised is not None:
                raise raised

    if raised is None:
        await handle()
    else:
        with pytest.raises(type(raised)):
            await handle()
    await finish_settlements()
    assert [(row["ending"], row["code"]) for row in rows()] == [(ending, code)]


async def test_what_the_handler_says_wins_over_what_it_raises(
    principal: Principal, facts: Facts, rows: Rows
) -> None:
    with pytest.raises(Boom):
        async with gate(principal, facts()) as admission:
            admission.finish(Ending.FAILED, Code.ENGINE_LOST)
            raise Boom
    await finish_settlements()
    assert [row["code"] for row in rows()] == ["engine_lost"]


async def test_a_hundred_cancelled_handlers_leave_one_row_each(
    loop_store: redis.Redis, principal: Principal, facts: Facts, rows: Rows
) -> None:
    inside = 0

    async def handle(number: int) -> None:
        nonlocal inside
        async with gate(principal, facts(f"r{number}")):
            inside += 1
            await asyncio.Event().wait()

    tasks = [asyncio.create_task(handle(number)) for number in range(100)]
    async with asyncio.timeout(30):
        while inside < 50:
            await asyncio.sleep(0)
    num_admitted = inside
    for task in tasks:
        task.cancel()
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    async with asyncio.timeout(30):
        while loop_store.exists("octavo:{b:0}:open") or num_leases(loop_store):
            await finish_settlements()
            await asyncio.sleep(0.01)
    ids = [row["request_id"] for row in rows()]
    assert len(ids) == len(set(ids)) >= num_admitted
    assert {row["ending"] for row in rows()} == {"aborted"}


async def test_refusals_leave_neither_row_nor_place(
    loop_store: redis.Redis, principal: Principal, facts: Facts, rows: Rows
) -> None:
    await pass_gate(principal, facts("first"))
    assert (await refusal(replace(principal, is_suspended=True), facts())).code == "insufficient_permissions"
    assert (await refusal(principal, facts(), FleetFacts(7, 7))).code == "context_length_exceeded"
    limited = limited_to(principal, concurrent=1)
    async with gate(limited, facts("a")):
        denied = await refusal(limited, facts("b"))
        assert (denied.code, denied.retry_after_s) == (Code.CONCURRENCY_LIMIT_EXCEEDED, 1.0)
        assert num_leases(loop_store) == 3
    await finish_settlements()
    assert [row["request_id"] for row in rows()] == ["first", "a"]


async def test_one_at_a_time_is_not_refused_for_the_request_that_is_just_leaving(
    loop_store: redis.Redis, principal: Principal, facts: Facts, rows: Rows
) -> None:
    """The client has its answer and asks again while the handler still counts what the engine made."""
    await pass_gate(principal, facts("first"))
    limited = limited_to(principal, concurrent=1)
    async with gate(limited, facts("a")) as admission:
        admission.finish(Ending.FINISHED)
        following = asyncio.create_task(pass_gate(limited, facts("b")))
        await asyncio.wait({following}, timeout=0.2)
        assert not following.done()
    await asyncio.wait_for(following, 10)
    assert sorted(row["request_id"] for row in rows()) == ["a", "b", "first"]


async def test_a_place_that_stays_taken_is_not_waited_for(
    loop_store: redis.Redis, principal: Principal, facts: Facts, rows: Rows
) -> None:
    await pass_gate(principal, facts("first"))
    limited = limited_to(principal, concurrent=2)
    async with gate(limited, facts("a")), gate(limited, facts("b")) as leaver:
        assert (await refusal(limited, facts("c"))).code is Code.CONCURRENCY_LIMIT_EXCEEDED
        leaver.finish(Ending.FINISHED)  # but it never gets through the door
        assert (await refusal(limited, facts("d"))).code is Code.CONCURRENCY_LIMIT_EXCEEDED


async def test_headers_tell_of_the_limits_that_exist(principal: Principal, facts: Facts, rows: Rows) -> None:
    assert (await pass_gate(principal, facts("a"))).headers() == {}
    limited = limited_to(principal, requests_per_minute=600)
    of_key = LimitRule(LimitScope.KEY, LimitKind.REQUESTS_PER_MINUTE, 1, burst=2)
    limited = replace(limited, limits=(*limited.limits, of_key))
    admission = await pass_gate(limited, facts("b"))
    assert admission.headers() == {
        "x-ratelimit-limit-requests": "1",
        "x-ratelimit-remaining-requests": "1",
        "x-ratelimit-reset-requests": "1m0s",
    }
    await pass_gate(limited, facts("c"))
    denied = await refusal(limited, facts("d"))
    assert denied.code is Code.RATE_LIMIT_EXCEEDED and denied.retry_after_s
    assert 0 < denied.retry_after_s <= 60.0
    assert denied.headers["x-ratelimit-remaining-requests"] == "0"


async def test_a_revoked_key_is_refused_on_the_very_next_request(
    loop_store: redis.Redis, key_and_secret: KeyAndSecret, facts: Facts, in_thread: InThread
) -> None:
    """This process has the key in its cache; the revocation happens elsewhere."""
    header = f"Bearer {key_and_secret[1]}"
    await pass_gate(await authenticate(header), facts("a"))
    await in_thread(revoke_key, key_and_secret[0])
    cached = await authenticate(header)
    assert (await refusal(cached, facts("b"))).code is Code.INVALID_API_KEY
    assert num_leases(loop_store) == 0
    with pytest.raises(Denied):
        await authenticate(header)


async def test_changed_limits_rule_the_very_next_request(
    loop_store: redis.Redis, key_and_secret: KeyAndSecret, tenant: Tenant, facts: Facts, in_thread: InThread
) -> None:
    header = f"Bearer {key_and_secret[1]}"
    assert (await pass_gate(await authenticate(header), facts("a"))).max_tokens > 3
    await in_thread(update_tenant, tenant, max_output_tokens=3)
    assert (await pass_gate(await authenticate(header), facts("b"))).max_tokens == 3
    await in_thread(update_key, key_and_secret[0], allowed_models=["other"])
    assert (await refusal(await authenticate(header), facts("c"))).code is Code.MODEL_NOT_FOUND
    await in_thread(suspend_tenant, tenant)
    assert (await refusal(await authenticate(header), facts("d"))).code is Code.INSUFFICIENT_PERMISSIONS


@pytest.mark.parametrize(
    ("change", "code"), [("revoke", Code.INVALID_API_KEY), ("suspend", Code.INSUFFICIENT_PERMISSIONS)]
)
async def test_an_open_stream_hears_of_it_at_the_next_renewal(
    loop_store: redis.Redis,
    key_and_secret: KeyAndSecret,
    tenant: Tenant,
    facts: Facts,
    in_thread: InThread,
    rows: Rows,
    change: str,
    code: Code,
) -> None:
    assert current_settings.OCTAVO_LEASE_RENEWAL_SECONDS <= 0.5
    principal = await authenticate(f"Bearer {key_and_secret[1]}")
    heard: asyncio.Future[Code] = asyncio.get_running_loop().create_future()
    async with gate(principal, facts()) as admission:
        admission.on_end(heard.set_result)
        if change == "revoke":
            await in_thread(revoke_key, key_and_secret[0])
        else:
            await in_thread(suspend_tenant, tenant)
        assert await asyncio.wait_for(heard, 10) is code
        admission.finish(Ending.ABORTED, code)
    await finish_settlements()
    assert [row["code"] for row in rows()] == [code]


async def test_an_open_stream_lives_on_through_a_change_that_allows_it(
    loop_store: redis.Redis, key_and_secret: KeyAndSecret, tenant: Tenant, facts: Facts, in_thread: InThread
) -> None:
    principal = await authenticate(f"Bearer {key_and_secret[1]}")
    heard: list[Code] = []
    async with gate(principal, facts()) as admission:
        admission.on_end(heard.append)
        changed = await in_thread(update_tenant, tenant, weight=5.0)
        async with asyncio.timeout(10):
            while admission.policy_epoch < changed.policy_epoch:
                await asyncio.sleep(0.02)
        admission.finish(Ending.FINISHED)
    assert heard == []


async def test_a_cold_redis_reads_the_policy_again(
    loop_store: redis.Redis, key_and_secret: KeyAndSecret, facts: Facts, rows: Rows
) -> None:
    principal = await authenticate(f"Bearer {key_and_secret[1]}")
    await pass_gate(principal, facts("a"))
    loop_store.delete(*loop_store.scan_iter("octavo:{b:*"))  # type: ignore[misc]
    await pass_gate(principal, facts("b"))
    assert [row["request_id"] for row in rows()] == ["b"]


async def test_what_is_over_is_gone_without_the_collector(
    loop_store: redis.Redis, principal: Principal, facts: Facts
) -> None:
    """Which runs seldom in a gateway (gateway/server.py): a cycle for each request would pile up."""

    class Handler:
        def __init__(self, admission: Admission) -> None:
            self.admission = admission
            admission.on_end(self.end)

        def end(self, code: Code) -> None: ...

    async def handle() -> "weakref.ref[Admission]":
        async with gate(principal, facts()) as admission:
            Handler(admission)
            admission.finish(Ending.FINISHED)
        return weakref.ref(admission)

    gc.disable()
    try:
        left = await handle()
        await finish_settlements()
        await asyncio.sleep(0)
        assert left() is None
    finally:
        gc.enable()
