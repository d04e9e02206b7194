"""What nobody settles is settled by the sweeper, from what is known."""

from collections.abc import Callable

import pytest
import redis

from quotas.limits import Policy
from quotas.reservations import Reservation, settle
from quotas.sweeper import Sweeper
from reserving import reserve

MakeReservation = Callable[..., Reservation]
MakePolicy = Callable[..., Policy]


@pytest.fixture
def sweeper(store: redis.Redis) -> Sweeper:
    return Sweeper(store, grace_s=0.0, quiet_s=0.0)


@pytest.fixture
async def abandoned(loop_store: redis.Redis, reservation: MakeReservation, policy: MakePolicy) -> Reservation:
    """Reserved, renewed once with some usage, then forgotten by its gateway until its lease expired."""
    mine = reservation()
    await reserve(mine, policy(), is_fresh=True)
    loop_store.hset(mine.keys.reservation, mapping={"prompt_tokens": 7, "output_tokens": 3})
    loop_store.zadd(mine.keys.open, {"r1": 1})
    return mine


def rows(store: redis.Redis, reservation: Reservation) -> list[dict[bytes, bytes]]:
    return [fields for _, fields in store.xrange(reservation.keys.ledger)]  # type: ignore[union-attr]


async def test_an_expired_reservation_is_settled_from_its_last_renewal(
    store: redis.Redis, sweeper: Sweeper, abandoned: Reservation
) -> None:
    assert sweeper.sweep() == 1
    (row,) = rows(store, abandoned)
    assert (row[b"prompt_tokens"], row[b"output_tokens"]) == (b"7", b"3")
    assert (row[b"ending"], row[b"source"], row[b"tenant_name"]) == (b"failed", b"estimated", b"Acme")
    keys = abandoned.keys
    assert not store.exists(keys.tenant_leases, keys.key_leases, keys.open, keys.reservation)


async def test_the_engines_own_count_wins_over_the_last_renewal(
    store: redis.Redis, sweeper: Sweeper, abandoned: Reservation
) -> None:
    figures = {"engine_usage:r-0": "0 7 2 3 r-0", "engine_usage:r-1": "1 7 7 2 r-0"}
    store.hset(abandoned.keys.reservation, mapping=figures)
    assert sweeper.sweep() == 1
    (row,) = rows(store, abandoned)
    assert (row[b"output_tokens"], row[b"cached_tokens"], row[b"prompt_tokens"]) == (b"5", b"7", b"7")


async def test_live_reservations_are_left_alone(
    loop_store: redis.Redis, sweeper: Sweeper, reservation: MakeReservation, policy: MakePolicy
) -> None:
    await reserve(reservation(), policy(), is_fresh=True)
    assert sweeper.sweep() == 0
    assert loop_store.exists(reservation().keys.reservation)


async def test_a_renewal_that_comes_first_wins(
    store: redis.Redis, sweeper: Sweeper, abandoned: Reservation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Renewed between the sweeper's look and its settlement."""
    look = sweeper._expired

    def look_then_renewed(before_ms: int) -> list[tuple[int, str]]:
        found = look(before_ms)
        store.zadd(abandoned.keys.open, {"r1": before_ms + 60_000})
        return found

    monkeypatch.setattr(sweeper, "_expired", look_then_renewed)
    assert sweeper.sweep() == 0
    assert rows(store, abandoned) == [] and store.exists(abandoned.keys.reservation)


async def test_a_settlement_after_the_sweep_is_no_second_row(
    store: redis.Redis, sweeper: Sweeper, abandoned: Reservation
) -> None:
    assert sweeper.sweep() == 1
    assert not await settle(abandoned.keys, {"output_tokens": "9"})
    assert len(rows(store, abandoned)) == 1


async def test_an_entry_without_a_reservation_is_only_cleared(
    store: redis.Redis, sweeper: Sweeper, abandoned: Reservation
) -> None:
    store.delete(abandoned.keys.reservation)
    assert sweeper.sweep() == 0
    assert not store.exists(abandoned.keys.open, abandoned.keys.ledger)


async def test_a_young_run_of_redis_is_left_alone(store: redis.Redis, abandoned: Reservation) -> None:
    """Leases ran out while Redis was away; their holders renew them now."""
    assert Sweeper(store, grace_s=0.0, quiet_s=1e9).sweep() == 0
    assert store.exists(abandoned.keys.reservation)
