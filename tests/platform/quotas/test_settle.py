"""Closing a reservation: its places are freed and its row is appended, once."""

import asyncio
from collections.abc import Callable

import redis

from quotas.limits import Policy
from quotas.reservations import Reservation, settle
from reserving import reserve

MakeReservation = Callable[..., Reservation]
MakePolicy = Callable[..., Policy]


def rows(store: redis.Redis, reservation: Reservation) -> list[dict[bytes, bytes]]:
    return [fields for _, fields in store.xrange(reservation.keys.ledger)]  # type: ignore[union-attr]


async def test_the_row_holds_the_reservation_and_the_settlement_which_wins(
    loop_store: redis.Redis, reservation: MakeReservation, policy: MakePolicy
) -> None:
    mine = reservation()
    await reserve(mine, policy(), is_fresh=True)
    await settle(mine.keys, {"output_tokens": "5", "key_name": "renamed"})
    (row,) = rows(loop_store, mine)
    assert (row[b"request_id"], row[b"output_tokens"]) == (b"r1", b"5")
    assert (row[b"tenant_name"], row[b"key_name"]) == (b"Acme", b"renamed")
    assert b"admitted_at" in row


async def test_settling_many_times_at_once_appends_one_row(
    loop_store: redis.Redis, reservation: MakeReservation, policy: MakePolicy
) -> None:
    mine = reservation()
    await reserve(mine, policy(), is_fresh=True)
    closed = await asyncio.gather(*(settle(mine.keys, {}) for _ in range(50)))
    assert sum(closed) == 1 and len(rows(loop_store, mine)) == 1


async def test_what_redis_lost_is_appended_and_only_once(
    loop_store: redis.Redis, reservation: MakeReservation, policy: MakePolicy
) -> None:
    mine = reservation()
    await reserve(mine, policy(), is_fresh=True)
    loop_store.delete(mine.keys.reservation)
    for _ in range(3):
        assert not await settle(mine.keys, {**mine.fields, "output_tokens": "5"})
    (row,) = rows(loop_store, mine)
    assert (row[b"request_id"], row[b"output_tokens"]) == (b"r1", b"5")
    assert loop_store.zcard(mine.keys.tenant_leases) == 0


async def test_nothing_of_our_own_books_is_in_the_row(
    loop_store: redis.Redis, reservation: MakeReservation, policy: MakePolicy
) -> None:
    mine = reservation(tokens=5)
    await reserve(mine, policy(per_minute=600), is_fresh=True)
    assert any(name.startswith(b"rate:") for name in loop_store.hkeys(mine.keys.reservation))  # type: ignore[union-attr]
    await settle(mine.keys, {})
    (row,) = rows(loop_store, mine)
    assert not [name for name in row if b":" in name]
