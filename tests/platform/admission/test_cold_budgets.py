"""Budgets that Redis knows nothing of: counted from the ledger first, whoever else loads, settles or dies."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
import redis
from django.db import connection
from redis.exceptions import ConnectionError as RedisConnectionError

from admission import settlement
from admission.admission import Admission
from admission.admitting import admit
from admission.facts import RequestFacts
from admission.gate import gate
from admission.settlement import finish_settlements
from api_keys.authentication import authenticate, cache
from api_keys.services import create_key
from daytime import where_it_is_noon
from inference_engine.contract.codes import Code
from polling import until
from quotas import budget_loading
from quotas.leases import lease_keeper
from quotas.models import Limit
from quotas.reservation_keys import ReservationKeys
from quotas.services import clear_limit, set_limit
from quotas.sweeper import Sweeper
from reserving import run_out_all_leases
from servers_of_tests import RedisServer
from tenants.errors import Denied
from tenants.models import Tenant
from tenants.services import create_tenant
from usage.ledger_writer import LedgerWriter
from usage.models import Ending, LedgerEntry

InThread = Callable[..., Awaitable[Any]]
Facts = Callable[..., RequestFacts]
BUDGET = 1000


@pytest.fixture
async def header(any_database: str, server: RedisServer, in_thread: InThread) -> str:
    def make() -> str:
        tenant = create_tenant("Acme", time_zone=where_it_is_noon())
        key, plaintext = create_key(tenant, "k")
        set_limit(tenant, "tokens_per_month", BUDGET)
        set_limit(tenant, "tokens_per_day", BUDGET, key=key)
        return f"Bearer {plaintext}"

    return str(await in_thread(make))


async def admitted(header: str, facts: RequestFacts) -> Admission:
    return await admit(await authenticate(header), facts, None, None)


async def use(header: str, facts: RequestFacts, tokens: int = 10) -> bool:
    """Whether it came in; then it uses all that it reserved."""
    try:
        async with gate(await authenticate(header), facts) as admission:
            admission.record(prompt_tokens=facts.prompt_tokens, output_tokens=tokens - facts.prompt_tokens)
            admission.finish(Ending.FINISHED)
    except Denied as denied:
        assert denied.code in {Code.INSUFFICIENT_QUOTA, Code.RATE_LIMIT_EXCEEDED, Code.STORE_UNAVAILABLE}
        return False
    return True


def write_all(url: str) -> int:
    """Billed tokens of the ledger, once all is written."""
    with redis.Redis.from_url(url) as client:
        writer = LedgerWriter(client)
        while writer.write_some(1):
            pass
    return sum(row.prompt_tokens + row.output_tokens for row in LedgerEntry.objects.all())


async def sweep_all(url: str) -> None:
    """A place whose answer was lost when Redis was killed is nobody's but the sweeper's."""
    run_out_all_leases(url)
    with redis.Redis.from_url(url) as client:
        sweeper = Sweeper(client, grace_s=0.0, quiet_s=0.0)
        async with asyncio.timeout(30):
            while list(client.scan_iter("octavo:{b:*}:open")):
                sweeper.sweep()
                await asyncio.sleep(0.01)


def budgets(url: str) -> list[tuple[int, int]]:
    """Spent and reserved of each that is warm."""
    with redis.Redis.from_url(url) as client:
        found: list[Any] = [client.hgetall(name) for name in client.scan_iter("octavo:{b:*}:budget:*")]
    return [(int(each[b"spent"]), int(each[b"reserved"])) for each in found if b"loaded" in each]


async def many(header: str, facts: Facts, names: range, tokens: int = 10) -> int:
    came = await asyncio.gather(
        *(use(header, facts(f"r{name}", max_tokens=tokens - 7), tokens) for name in names)
    )
    await finish_settlements(30)
    return sum(came)


async def test_flushed_in_the_middle_it_goes_on_where_the_ledger_is(
    header: str, server: RedisServer, facts: Facts, in_thread: InThread
) -> None:
    """Rows that were written stay counted; those still in the stream die with it, as does all else."""
    assert await many(header, facts, range(30)) == 30
    assert await in_thread(write_all, server.url) == 300
    with redis.Redis.from_url(server.url) as client:
        client.flushall()
    assert await many(header, facts, range(100, 200)) == 70
    assert budgets(server.url) == [(BUDGET, 0)] * 2
    assert await in_thread(write_all, server.url) == BUDGET


async def test_flushed_while_requests_run_they_are_counted_again(
    header: str, server: RedisServer, facts: Facts, in_thread: InThread
) -> None:
    async with gate(await authenticate(header), facts("open", max_tokens=493)) as admission:
        with redis.Redis.from_url(server.url) as client:
            client.flushall()
        await lease_keeper().renew()
        assert await many(header, facts, range(100)) == 50
        assert sorted(budgets(server.url)) == [(500, 500)] * 2
        admission.record(prompt_tokens=7, output_tokens=93)
        admission.finish(Ending.FINISHED)
    await finish_settlements(30)
    assert sorted(budgets(server.url)) == [(600, 0)] * 2
    assert await in_thread(write_all, server.url) == 600


async def test_what_was_spent_while_a_limit_was_cleared_counts_when_it_is_set_again(
    header: str, facts: Facts, in_thread: InThread
) -> None:
    def clear_all() -> None:
        for limit in Limit.objects.all():
            clear_limit(limit)

    def set_again() -> None:
        set_limit(Tenant.objects.get(), "tokens_per_month", BUDGET)

    assert await many(header, facts, range(20)) == 20
    await in_thread(clear_all)
    assert await many(header, facts, range(100, 150)) == 50
    await in_thread(set_again)
    assert await many(header, facts, range(200, 300)) == 30


async def test_rows_on_their_way_and_requests_in_flight_count_when_a_limit_is_new(
    header: str, server: RedisServer, facts: Facts, in_thread: InThread
) -> None:
    assert await many(header, facts, range(20)) == 20
    await in_thread(write_all, server.url)
    assert await many(header, facts, range(20, 40)) == 20  # these are still in the stream
    async with gate(await authenticate(header), facts("open", max_tokens=93)) as admission:
        tenant = await in_thread(Tenant.objects.get)
        await in_thread(set_limit, tenant, "tokens_per_day", BUDGET, model="m")
        assert await many(header, facts, range(40, 140)) == 50
        assert sorted(budgets(server.url)) == [(900, 100)] * 3
        admission.record(prompt_tokens=7, output_tokens=3)
        admission.finish(Ending.FINISHED)
    await finish_settlements(30)
    assert sorted(budgets(server.url)) == [(910, 0)] * 3
    assert await in_thread(write_all, server.url) == 910


async def test_a_new_run_that_forgot_everything_admits_nothing_before_it_was_told(
    header: str, server: RedisServer, facts: Facts, in_thread: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is in the ledger: all that was spent and is reserved is known to this process alone."""
    send_again = settlement._again

    async def slowly(settled: settlement.Settled) -> None:
        await asyncio.sleep(0.3)
        await send_again(settled)

    monkeypatch.setattr(settlement, "_again", slowly)
    async with gate(await authenticate(header), facts("open", max_tokens=193)) as admission:
        assert await many(header, facts, range(70)) == 70
        with redis.Redis.from_url(server.url) as client:
            client.flushall()
        await asyncio.to_thread(server.stop)
        await asyncio.to_thread(server.start)
        assert await many(header, facts, range(100, 200)) == 10
        assert budgets(server.url) == [(800, 200)] * 2
        admission.record(prompt_tokens=7, output_tokens=193)
        admission.finish(Ending.FINISHED)
    await finish_settlements(30)
    assert budgets(server.url) == [(BUDGET, 0)] * 2
    assert await in_thread(write_all, server.url) == BUDGET


async def test_a_settlement_that_is_tried_again_counts_before_a_new_run_that_forgot_it_admits_anybody(
    header: str, server: RedisServer, facts: Facts, in_thread: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither held any more nor settled yet: only its settlement, waiting for its next try, knows of it."""
    settle, failures = settlement.settle, [RedisConnectionError("away")]

    async def at_second_try(keys: ReservationKeys, row: Mapping[str, str]) -> bool:
        if failures:
            raise failures.pop()
        return await settle(keys, row)

    monkeypatch.setattr(settlement, "settle", at_second_try)
    monkeypatch.setattr(settlement, "FIRST_WAIT_S", 1.0)
    await use(header, facts("last", max_tokens=193), 200)
    await until(lambda: not failures)
    with redis.Redis.from_url(server.url) as client:
        client.flushall()
    await asyncio.to_thread(server.stop)
    await asyncio.to_thread(server.start)
    assert await many(header, facts, range(100)) == 80
    assert budgets(server.url) == [(BUDGET, 0)] * 2
    assert await in_thread(write_all, server.url) == BUDGET


async def test_two_loaders_that_race_count_everything_once(
    header: str, server: RedisServer, facts: Facts, in_thread: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One stops between beginning and finishing; the other, impatient, begins anew and finishes first."""
    assert await many(header, facts, range(30)) == 30
    with redis.Redis.from_url(server.url) as client:
        client.delete(*client.scan_iter("octavo:{b:*}:budget:*"))  # type: ignore[misc]
    monkeypatch.setattr(budget_loading, "PATIENCE_MS", 0)
    load, loads = budget_loading._load, []

    async def twice(*args: Any) -> None:
        loads.append(args)
        await asyncio.gather(load(*args), load(*args))

    monkeypatch.setattr(budget_loading, "_load", twice)
    assert await many(header, facts, range(100, 200)) == 70
    assert loads and budgets(server.url) == [(BUDGET, 0)] * 2
    assert await in_thread(write_all, server.url) == BUDGET


async def test_a_request_that_ends_and_is_written_while_a_budget_is_loaded_counts_once(
    header: str, server: RedisServer, facts: Facts, in_thread: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was open when the loading began, so it counts as it settles; the ledger has it before it is read."""
    begin = budget_loading._begin
    admission = await admitted(header, facts("open", max_tokens=93))

    async def then_it_ends(*args: Any) -> Any:
        waiting = await begin(*args)
        admission.record(prompt_tokens=7, output_tokens=93)
        admission.finish(Ending.FINISHED)
        admission.settle()
        await finish_settlements(30)
        await in_thread(write_all, server.url)
        return waiting

    with redis.Redis.from_url(server.url) as client:
        client.delete(*client.scan_iter("octavo:{b:*}:budget:*"))  # type: ignore[misc]
    monkeypatch.setattr(budget_loading, "_begin", then_it_ends)
    assert await use(header, facts("next", max_tokens=3))
    await finish_settlements(30)
    assert budgets(server.url) == [(110, 0)] * 2


async def test_without_a_database_a_cold_budget_admits_nothing_and_a_warm_one_goes_on(
    header: str, server: RedisServer, facts: Facts, in_thread: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget_loading, "PATIENCE_MS", 100)  # with the load that failed
    assert await many(header, facts, range(10)) == 10

    def rename(before: str, after: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {before} RENAME TO {after}")

    await in_thread(rename, "usage_hourlyusage", "elsewhere")
    try:
        assert await many(header, facts, range(10, 20)) == 10
        with redis.Redis.from_url(server.url) as client:
            client.delete(*client.scan_iter("octavo:{b:*}:budget:*"))  # type: ignore[misc]
        assert await many(header, facts, range(20, 30)) == 0
    finally:
        await in_thread(rename, "elsewhere", "usage_hourlyusage")
    assert await many(header, facts, range(30, 40)) == 10
    assert budgets(server.url) == [(300, 0)] * 2


async def test_killed_under_load_nothing_is_admitted_wrongly_and_no_row_is_lost(
    header: str, server: RedisServer, facts: Facts, in_thread: InThread
) -> None:
    """SIGKILL while requests come, run and leave; Redis comes back from its file. Then all settles."""
    admitted: list[str] = []

    async def client(number: int) -> None:
        for turn in range(40):
            name = f"c{number}-{turn}"
            if await use(header, facts(name, max_tokens=3)):
                admitted.append(name)
            await asyncio.sleep(0.005)

    async def kill_twice() -> None:
        for _ in range(2):
            await asyncio.sleep(0.15)
            await asyncio.to_thread(server.restart)

    await asyncio.gather(kill_twice(), *(client(number) for number in range(6)))
    await finish_settlements(60)
    await sweep_all(server.url)
    assert await use(header, facts("last", max_tokens=3)) is (len(admitted) < BUDGET / 10)
    await finish_settlements(60)
    spent = await in_thread(write_all, server.url)
    names = set(await in_thread(lambda: list(LedgerEntry.objects.values_list("request_id", flat=True))))
    assert set(admitted) <= names and spent <= BUDGET
    assert {each for each, _ in budgets(server.url)} == {spent}
    with redis.Redis.from_url(server.url) as store:
        assert not list(store.scan_iter("octavo:{b:*}:leases:*"))
    cache.forget_all()
