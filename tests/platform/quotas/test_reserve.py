"""One reservation over all scopes, or none of it."""

import asyncio
import time
from collections.abc import Callable

import pytest
import redis

from clock_of_tests import moved_by_hand
from quotas.limits import BUDGETS, LimitKind, LimitRule, LimitScope, Policy
from quotas.outcomes import NoRoom, RateStates, Reserved, Stale
from quotas.periods import Period
from quotas.reservations import Reservation, release, settle
from reserving import reserve
from tenants.shards import epoch_key

MakeReservation = Callable[..., Reservation]
MakePolicy = Callable[..., Policy]


def num_running(store: redis.Redis, reservation: Reservation) -> tuple[int, int]:
    keys = reservation.keys
    return store.zcard(keys.tenant_leases), store.zcard(keys.key_leases)  # type: ignore[return-value]


async def test_a_place_is_taken_in_both_scopes_and_given_back(
    loop_store: redis.Redis, reservation: MakeReservation, policy: MakePolicy
) -> None:
    mine = reservation()
    outcome = await reserve(mine, policy(), is_fresh=True)
    assert isinstance(outcome, Reserved) and outcome.rates == RateStates()
    assert num_running(loop_store, mine) == (1, 1)
    held = loop_store.hgetall(mine.keys.reservation)
    assert held[b"tenant_name"] == b"Acme" and held[b"admitted_at"].decode() == mine.fields["admitted_at"]
    assert abs(outcome.admitted_at - time.time()) < 60

    assert await settle(mine.keys, {"ending": "finished"})
    assert num_running(loop_store, mine) == (0, 0)
    assert not loop_store.exists(mine.keys.reservation, mine.keys.open)


async def test_all_keys_of_a_reservation_share_their_tenants_hash_tag(reservation: MakeReservation) -> None:
    keys = reservation(tenant_id="135").keys
    names = [keys.reservation, keys.open, keys.ledger, keys.epoch, keys.tenant_leases, keys.key_leases]
    for scope in LimitScope:
        names.append(keys.rate(LimitRule(scope, LimitKind.REQUESTS_PER_MINUTE, 1)))
        names += [
            keys.budget(LimitRule(scope, kind, 1), Period(start, 100)) for kind in BUDGETS for start in (0, 1)
        ]
    names += [keys.settled, keys.leases(LimitScope.MODEL)]
    assert all(name.startswith("octavo:{b:7}:") for name in names) and len(set(names)) == len(names)


async def test_two_hundred_at_once_never_exceed_the_concurrency(
    loop_store: redis.Redis, reservation: MakeReservation, policy: MakePolicy
) -> None:
    rules = policy(concurrent=5)
    assert await reserve(reservation("first"), rules, is_fresh=True)
    outcomes = await asyncio.gather(
        *(reserve(reservation(f"r{i}"), rules, is_fresh=False) for i in range(200))
    )
    assert sum(isinstance(outcome, Reserved) for outcome in outcomes) == 4
    assert {outcome.rule for outcome in outcomes if isinstance(outcome, NoRoom)} == {*rules.rules}
    assert num_running(loop_store, reservation()) == (5, 5)


async def test_places_freed_and_taken_in_a_storm_never_exceed_the_limit(
    loop_store: redis.Redis, reservation: MakeReservation, policy: MakePolicy
) -> None:
    rules, running, most = policy(concurrent=3), 0, 0

    async def live(number: int) -> bool:
        nonlocal running, most
        mine = reservation(f"r{number}")
        if not isinstance(await reserve(mine, rules, is_fresh=True), Reserved):
            return False
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        await settle(mine.keys, {})
        return True

    admitted = await asyncio.gather(*(live(number) for number in range(200)))
    assert most <= 3 <= sum(admitted)
    assert num_running(loop_store, reservation()) == (0, 0)


async def test_a_keys_limit_refuses_without_touching_the_tenants_counts(
    loop_store: redis.Redis, reservation: MakeReservation, policy: MakePolicy
) -> None:
    of_key = LimitRule(LimitScope.KEY, LimitKind.CONCURRENT, 1)
    rules = policy(concurrent=10, per_minute=600)
    rules = Policy(1, (*rules.rules, of_key))
    first = await reserve(reservation("a"), rules, is_fresh=True)
    before = {name: loop_store.dump(name) for name in loop_store.scan_iter("octavo:{b:7}:*")}
    refused = await reserve(reservation("b"), rules, is_fresh=False)
    assert isinstance(refused, NoRoom) and refused.rule == of_key
    assert {name: loop_store.dump(name) for name in loop_store.scan_iter("octavo:{b:7}:*")} == before
    other_key = reservation("c", key_id="other")
    again = await reserve(other_key, rules, is_fresh=False)
    assert isinstance(first, Reserved) and isinstance(again, Reserved)
    assert first.rates.requests and again.rates.requests
    assert again.rates.requests.remaining == first.rates.requests.remaining - 1


async def test_the_same_request_again_is_the_same_reservation(
    loop_store: redis.Redis, reservation: MakeReservation, policy: MakePolicy
) -> None:
    rules = policy(concurrent=1, per_minute=60)
    outcomes = [await reserve(reservation(), rules, is_fresh=True) for _ in range(3)]
    assert all(isinstance(outcome, Reserved) for outcome in outcomes)
    states = [outcome.rates.requests for outcome in outcomes if isinstance(outcome, Reserved)]
    assert len({state and state.remaining for state in states}) == 1
    assert num_running(loop_store, reservation()) == (1, 1)


async def test_an_expired_lease_frees_its_place(
    loop_store: redis.Redis, reservation: MakeReservation, policy: MakePolicy
) -> None:
    rules = policy(concurrent=1)
    assert isinstance(await reserve(reservation("a"), rules, is_fresh=True), Reserved)
    assert isinstance(await reserve(reservation("b"), rules, is_fresh=False), NoRoom)
    keys = reservation().keys
    loop_store.zadd(keys.tenant_leases, {"a": 1})
    assert isinstance(await reserve(reservation("b"), rules, is_fresh=False), Reserved)


# Requests per minute.


async def test_no_interval_admits_more_than_burst_and_rate(
    loop_store: redis.Redis, reservation: MakeReservation, policy: MakePolicy
) -> None:
    """600 a minute: a burst of 60, then one in 100 ms. Times are the server's own."""
    rules = policy(per_minute=600)
    refused: list[NoRoom] = []

    async def keep_asking(client: int) -> None:
        for number in range(40):
            outcome = await reserve(reservation(f"c{client}-{number}"), rules, is_fresh=True)
            if isinstance(outcome, NoRoom):
                refused.append(outcome)
                await asyncio.sleep(0.02)

    await asyncio.gather(*(keep_asking(client) for client in range(8)))
    names = loop_store.scan_iter("octavo:{b:7}:reservation:*")
    times = sorted(float(loop_store.hget(name, "admitted_at") or 0) for name in names)  # type: ignore[arg-type]
    assert len(times) >= 60 and refused
    for first, start in enumerate(times):
        for last in range(first, len(times)):
            assert last - first + 1 <= 60 + 10 * (times[last] - start) + 1e-3
    assert all(0 < each.retry_after_s <= 0.1 for each in refused)


async def test_retry_after_is_true(
    loop_store: redis.Redis, reservation: MakeReservation, policy: MakePolicy
) -> None:
    """Refused until the time named, admitted after it."""
    rules, number = policy(per_minute=120), 0  # a burst of 12, then one in 500 ms
    while isinstance(outcome := await reserve(reservation(f"r{number}"), rules, is_fresh=True), Reserved):
        number += 1
    assert number >= 12 and isinstance(outcome, NoRoom) and outcome.rates.requests
    assert outcome.rule.value == 120 and 0 < outcome.retry_after_s <= 0.5
    assert outcome.retry_after_s <= outcome.rates.requests.reset_s <= 6.0
    await asyncio.sleep(outcome.retry_after_s)
    assert isinstance(await reserve(reservation("x"), rules, is_fresh=False), Reserved)


async def test_refusals_cost_nothing(
    loop_store: redis.Redis, reservation: MakeReservation, policy: MakePolicy
) -> None:
    rules = policy(per_minute=1)
    assert isinstance(await reserve(reservation("a"), rules, is_fresh=True), Reserved)
    first = await reserve(reservation("b"), rules, is_fresh=False)
    for number in range(20):
        last = await reserve(reservation(f"c{number}"), rules, is_fresh=False)
    assert isinstance(first, NoRoom) and isinstance(last, NoRoom)
    assert last.retry_after_s <= first.retry_after_s <= 60
    assert num_running(loop_store, reservation()) == (1, 1)


async def test_the_burst_is_a_tenth_of_the_limit_and_at_least_one(
    loop_store: redis.Redis, reservation: MakeReservation, policy: MakePolicy, settings: object
) -> None:
    async def admitted(tenant_id: str, per_minute: int) -> int:
        outcomes = [
            await reserve(reservation(f"r{i}", tenant_id), policy(per_minute=per_minute), is_fresh=True)
            for i in range(8)
        ]
        return sum(isinstance(outcome, Reserved) for outcome in outcomes)

    with moved_by_hand(loop_store):
        assert await admitted("1", 1) == 1
        assert await admitted("2", 40) == 4
        settings.OCTAVO_RATE_BURST_FRACTION = 1.0  # type: ignore[attr-defined]
        assert await admitted("3", 6) == 6


# Policy epochs.


async def test_an_epoch_that_redis_does_not_know_is_stale_until_the_policy_is_read_again(
    loop_store: redis.Redis, reservation: MakeReservation, policy: MakePolicy
) -> None:
    assert await reserve(reservation(), policy(epoch=3), is_fresh=False) == Stale()
    assert not loop_store.keys("octavo:{b:7}:*")
    assert isinstance(await reserve(reservation(), policy(epoch=3), is_fresh=True), Reserved)
    assert loop_store.get(epoch_key(7)) == b"3"


async def test_an_older_epoch_is_stale_even_if_it_was_just_read(
    loop_store: redis.Redis, reservation: MakeReservation, policy: MakePolicy
) -> None:
    loop_store.set(epoch_key(7), 5)
    assert await reserve(reservation(), policy(epoch=4), is_fresh=False) == Stale()
    assert await reserve(reservation(), policy(epoch=4), is_fresh=True) == Stale()
    assert isinstance(await reserve(reservation(), policy(epoch=5), is_fresh=False), Reserved)
    assert isinstance(await reserve(reservation(), policy(epoch=6), is_fresh=True), Reserved)
    assert loop_store.get(epoch_key(7)) == b"6"


async def test_released_is_as_if_it_never_was(
    loop_store: redis.Redis, reservation: MakeReservation, policy: MakePolicy
) -> None:
    mine = reservation()
    await reserve(mine, policy(), is_fresh=True)
    await release(mine.keys)
    assert num_running(loop_store, mine) == (0, 0)
    assert not loop_store.exists(mine.keys.reservation, mine.keys.open, mine.keys.ledger)


@pytest.mark.parametrize("tenant_id", ["1", "65", "4000000001"])
async def test_a_reservation_with_much_to_say_is_kept_whole(
    loop_store: redis.Redis, reservation: MakeReservation, policy: MakePolicy, tenant_id: str
) -> None:
    mine = reservation(tenant_id=tenant_id)
    mine.fields["metadata"] = "{" + "ü" * 20_000 + "}"
    assert isinstance(await reserve(mine, policy(), is_fresh=True), Reserved)
    assert loop_store.hget(mine.keys.reservation, "metadata") == mine.fields["metadata"].encode()
