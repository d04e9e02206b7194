"""Every kind of limit at the gate, from the database to Redis and back to the ledger."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis

from admission.admission import Admission
from admission.facts import RequestFacts
from admission.gate import gate
from admission.settlement import finish_settlements
from api_keys.authentication import authenticate
from api_keys.models import ApiKey
from inference_engine.contract.codes import Code
from quotas.services import clear_limit, set_limit
from tenants.errors import Denied
from tenants.models import Tenant
from tenants.services import update_tenant
from usage.ledger_writer import LedgerWriter
from usage.models import Ending, LedgerEntry

InThread = Callable[..., Awaitable[Any]]
Facts = Callable[..., RequestFacts]
KeyAndSecret = tuple[ApiKey, str]


@pytest.fixture
def header(loop_store: redis.Redis, key_and_secret: KeyAndSecret) -> str:
    return f"Bearer {key_and_secret[1]}"


class Crowd:
    """Many requests at once of one key: who came in, how many at a time, who was refused and why."""

    def __init__(self, header: str, facts: Facts) -> None:
        self._header, self._facts = header, facts
        self.admitted: list[Admission] = []
        self.refused: list[Denied] = []
        self.num_inside = self.most_inside = 0
        self._may_leave = asyncio.Event()

    async def one(self, number: int, used: tuple[int, int], **facts: Any) -> None:
        try:
            async with gate(
                await authenticate(self._header), self._facts(f"r{number}", **facts)
            ) as admission:
                self.admitted.append(admission)
                self.num_inside += 1
                self.most_inside = max(self.most_inside, self.num_inside)
                await self._may_leave.wait()
                admission.record(prompt_tokens=used[0], output_tokens=used[1])
                admission.finish(Ending.FINISHED)
                self.num_inside -= 1
        except Denied as denied:
            self.refused.append(denied)

    async def all(self, count: int, *, used: tuple[int, int] = (7, 3), **facts: Any) -> None:
        """All ask while nobody leaves; then everybody does."""
        asking = asyncio.gather(*(self.one(number, used, **facts) for number in range(count)))
        async with asyncio.timeout(60):
            while len(self.admitted) + len(self.refused) < count:
                await asyncio.sleep(0.01)
        self._may_leave.set()
        await asking
        await finish_settlements(30)


def counters(store: redis.Redis, pattern: str) -> list[dict[str, int]]:
    found = []
    for name in store.scan_iter(f"octavo:{{b:*}}:{pattern}"):
        fields: Any = store.hgetall(name)
        found.append({key.decode(): int(fields[key]) for key in (b"spent", b"reserved") if key in fields})
    return found


def assert_nothing_leaked(store: redis.Redis) -> None:
    for kind in ("leases:*", "open", "reservation:*"):
        assert not list(store.scan_iter(f"octavo:{{b:*}}:{kind}"))
    assert all(each["reserved"] == 0 for each in counters(store, "budget:*"))


async def written(store: redis.Redis, in_thread: InThread) -> int:
    """Everything on its way is in the ledger; billed tokens of all rows."""

    def write() -> int:
        writer = LedgerWriter(store)
        while writer.write_some(1):
            pass
        return sum(row.prompt_tokens + row.output_tokens for row in LedgerEntry.objects.all())

    return int(await in_thread(write))


SCOPES = ("tenant", "key", "model")


def of_scope(scope: str, key: ApiKey) -> dict[str, Any]:
    return {"tenant": {}, "key": {"key": key}, "model": {"model": "m"}}[scope]


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize(
    ("kind", "value", "burst", "most"),
    [
        ("concurrent", 9, None, 9),
        ("requests_per_minute", 60, 9, 9),
        ("tokens_per_minute", 600, 100, 9),
        ("tokens_per_day", 105, None, 10),
        ("tokens_per_month", 99, None, 9),
    ],
)
async def test_two_hundred_at_the_edge_of_each_limit(
    header: str,
    key_and_secret: KeyAndSecret,
    loop_store: redis.Redis,
    facts: Facts,
    in_thread: InThread,
    kind: str,
    value: int,
    burst: int | None,
    most: int,
    scope: str,
) -> None:
    """Each reserves 7 + 3 tokens and uses them; a rate lets some more in while the crowd takes its time."""
    key = key_and_secret[0]
    await in_thread(set_limit, key.tenant, kind, value, burst=burst, **of_scope(scope, key))
    crowd, started = Crowd(header, facts), time.monotonic()
    await crowd.all(200, max_tokens=3)
    minutes = (time.monotonic() - started) / 60
    cost = 10 if kind.startswith("tokens") else 1
    later = int(value * minutes / cost) + 1 if kind.endswith("minute") else 0
    assert most <= len(crowd.admitted) <= most + later
    assert {denied.code for denied in crowd.refused} <= {
        Code.CONCURRENCY_LIMIT_EXCEEDED,
        Code.RATE_LIMIT_EXCEEDED,
        Code.INSUFFICIENT_QUOTA,
    }
    assert all(str(value) in denied.message and denied.retry_after_s for denied in crowd.refused)
    assert_nothing_leaked(loop_store)
    spent = await written(loop_store, in_thread)
    assert spent == 10 * len(crowd.admitted)
    assert all(each["spent"] == spent for each in counters(loop_store, "budget:*"))


@pytest.mark.parametrize("number_of_tokens", [60])
async def test_case_25_a_burst_of_a_hundred_tokens(
    header: str, tenant: Tenant, facts: Facts, in_thread: InThread, number_of_tokens: int
) -> None:
    await in_thread(set_limit, tenant, "tokens_per_minute", 100, burst=100)
    crowd, started = Crowd(header, facts), time.monotonic()
    await crowd.all(20, prompt_tokens=50, max_tokens=number_of_tokens - 50)
    seconds = time.monotonic() - started
    assert number_of_tokens * len(crowd.admitted) <= 100 + 100 / 60 * seconds
    assert len(crowd.admitted) == 1 and len(crowd.refused) == 19
    for denied in crowd.refused:
        assert denied.code is Code.RATE_LIMIT_EXCEEDED and denied.retry_after_s
        assert 12 - seconds - 1 <= denied.retry_after_s <= 12
        assert denied.headers["x-ratelimit-limit-tokens"] == "100"
        assert 40 <= int(denied.headers["x-ratelimit-remaining-tokens"]) <= 40 + 100 / 60 * seconds


async def test_case_27_a_hard_monthly_budget_is_never_overspent(
    header: str, tenant: Tenant, loop_store: redis.Redis, facts: Facts, in_thread: InThread
) -> None:
    await in_thread(set_limit, tenant, "tokens_per_month", 1000)
    for number in range(9):
        crowd = Crowd(header, lambda name, number=number, **f: facts(f"{number}-{name}", **f))
        await crowd.all(50, used=(60, 20), prompt_tokens=60, max_tokens=40)
        (budget,) = counters(loop_store, "budget:*")
        assert budget["spent"] + budget["reserved"] <= 1000 and budget["reserved"] == 0
    assert budget["spent"] == await written(loop_store, in_thread) == 960
    assert {denied.code for denied in crowd.refused} == {Code.INSUFFICIENT_QUOTA}
    assert "1000 tokens per month" in crowd.refused[0].message and "begins at" in crowd.refused[0].message


async def test_what_running_requests_hold_is_worth_waiting_for_what_is_spent_is_not(
    header: str, tenant: Tenant, loop_store: redis.Redis, facts: Facts, in_thread: InThread
) -> None:
    await in_thread(set_limit, tenant, "tokens_per_day", 100)
    async with gate(await authenticate(header), facts("a", max_tokens=83)) as admission:
        with pytest.raises(Denied) as caught:
            async with gate(await authenticate(header), facts("b", max_tokens=83)):
                pytest.fail("admitted")
        assert (caught.value.code, caught.value.retry_after_s) == (Code.RATE_LIMIT_EXCEEDED, 1.0)
        admission.record(prompt_tokens=7, output_tokens=10)
        admission.finish(Ending.FINISHED)
    await finish_settlements()
    with pytest.raises(Denied) as caught:
        async with gate(await authenticate(header), facts("c", max_tokens=83)):
            pytest.fail("admitted")
    assert caught.value.code is Code.INSUFFICIENT_QUOTA
    async with gate(await authenticate(header), facts("d", max_tokens=76)):
        pass


@pytest.mark.parametrize("kind", ["tokens_per_minute", "tokens_per_day", "tokens_per_month"])
async def test_larger_than_the_whole_limit_is_refused_for_good(
    header: str, tenant: Tenant, loop_store: redis.Redis, facts: Facts, in_thread: InThread, kind: str
) -> None:
    limit = await in_thread(set_limit, tenant, kind, 50)
    with pytest.raises(Denied) as caught:
        async with gate(await authenticate(header), facts("a", max_tokens=44)):
            pytest.fail("admitted")
    assert (caught.value.code, caught.value.retry_after_s) == (Code.INSUFFICIENT_QUOTA, None)
    assert "51 tokens" in caught.value.message and "50 tokens per" in caught.value.message
    async with gate(await authenticate(header), facts("b", max_tokens=43)):
        pass
    await in_thread(clear_limit, limit)
    async with gate(await authenticate(header), facts("c", max_tokens=44)):
        pass


async def test_what_was_not_used_of_a_token_rate_is_given_back(
    header: str, tenant: Tenant, loop_store: redis.Redis, facts: Facts, in_thread: InThread
) -> None:
    await in_thread(set_limit, tenant, "tokens_per_minute", 1000, burst=1000)
    async with gate(await authenticate(header), facts("a", max_tokens=993)) as admission:
        assert admission.headers()["x-ratelimit-remaining-tokens"] == "0"
        admission.record(prompt_tokens=7, output_tokens=13)
        admission.finish(Ending.FINISHED)
    await finish_settlements()
    async with gate(await authenticate(header), facts("b", max_tokens=3)) as admission:
        assert 970 <= int(admission.headers()["x-ratelimit-remaining-tokens"]) <= 990


async def test_a_budget_of_another_time_zone_is_another_budget(
    header: str, tenant: Tenant, loop_store: redis.Redis, facts: Facts, in_thread: InThread
) -> None:
    """What was spent today, seen from there, is counted from the ledger."""
    await in_thread(set_limit, tenant, "tokens_per_day", 1000)
    crowd = Crowd(header, facts)
    await crowd.all(5, max_tokens=3)
    await in_thread(update_tenant, tenant, time_zone="Asia/Kathmandu")
    async with gate(await authenticate(header), facts("after", max_tokens=3)):
        pass
    await finish_settlements()
    budgets = list(loop_store.scan_iter("octavo:{b:*}:budget:tokens_per_day:*"))
    assert len(budgets) == 2
    assert_nothing_leaked(loop_store)
