"""The keeper: what is held stays alive, and hears of changed policies."""

import asyncio
import time
from collections.abc import Callable

import pytest
import redis

from quotas.leases import LeaseKeeper, Progress, lease_keeper
from quotas.limits import Policy
from quotas.outcomes import Reserved
from quotas.reservations import Reservation, settle
from reserving import reserve
from servers_of_tests import RedisServer
from tenants.shards import epoch_key

MakeReservation = Callable[..., Reservation]
MakePolicy = Callable[..., Policy]


class HeldRequest:
    """A lease that writes down what it is told."""

    def __init__(self, reservation: Reservation, epoch: int = 1) -> None:
        self.reservation = reservation
        self.policy_epoch = epoch
        self.used = Progress()
        self.heard: list[str] = []

    def progress(self) -> Progress:
        return self.used

    def policy_changed(self) -> None:
        self.heard.append("policy changed")

    def lost(self) -> None:
        self.heard.append("lost")


@pytest.fixture
def keeper(settings: object) -> LeaseKeeper:
    """One that renews only when a test says so."""
    settings.OCTAVO_LEASE_RENEWAL_SECONDS = 60.0  # type: ignore[attr-defined]
    return LeaseKeeper()


async def until(question: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not question():
            await asyncio.sleep(0.01)


async def test_renewal_moves_the_expiry_and_writes_the_tokens_so_far(
    loop_store: redis.Redis, keeper: LeaseKeeper, reservation: MakeReservation, policy: MakePolicy
) -> None:
    held = [HeldRequest(reservation(f"r{i}", tenant_id=str(i))) for i in (7, 71, 8)]  # 7 and 71: one bucket
    for each in held:
        await reserve(each.reservation, policy(), is_fresh=True)
        keys = each.reservation.keys
        for name in (keys.tenant_leases, keys.key_leases, keys.open):
            loop_store.zadd(name, {keys.request_id: 5})
        each.used = Progress(prompt_tokens=3, output_tokens=int(keys.tenant_id), first_token_at=1.5)
        keeper.hold(each)
    await keeper.renew()

    for each in held:
        keys = each.reservation.keys
        for name in (keys.tenant_leases, keys.key_leases, keys.open):
            expires_ms = loop_store.zscore(name, keys.request_id)
            assert expires_ms is not None and expires_ms / 1000 > time.time() + 5
        written = loop_store.hgetall(keys.reservation)
        assert written[b"output_tokens"] == keys.tenant_id.encode()
        assert (written[b"prompt_tokens"], written[b"first_token_at"]) == (b"3", b"1.5")
        assert each.heard == []


async def test_a_risen_or_forgotten_epoch_is_told(
    loop_store: redis.Redis, keeper: LeaseKeeper, reservation: MakeReservation, policy: MakePolicy
) -> None:
    held = HeldRequest(reservation())
    await reserve(held.reservation, policy(), is_fresh=True)
    keeper.hold(held)
    await keeper.renew()
    assert held.heard == []
    loop_store.set(epoch_key(7), 2)
    await keeper.renew()
    assert held.heard == ["policy changed"]
    loop_store.delete(epoch_key(7))
    await keeper.renew()
    assert held.heard == ["policy changed"] * 2


async def test_a_settled_request_is_not_brought_back(
    loop_store: redis.Redis, keeper: LeaseKeeper, reservation: MakeReservation, policy: MakePolicy
) -> None:
    held = HeldRequest(reservation())
    await reserve(held.reservation, policy(), is_fresh=True)
    keeper.hold(held)
    await settle(held.reservation.keys, {})
    await keeper.renew()
    assert held.heard == ["lost"] and keeper.num_held == 0
    assert loop_store.zcard(held.reservation.keys.tenant_leases) == 0
    assert not loop_store.exists(held.reservation.keys.reservation)


async def test_holding_something_is_enough_for_it_to_be_renewed(
    loop_store: redis.Redis, reservation: MakeReservation, policy: MakePolicy, settings: object
) -> None:
    settings.OCTAVO_LEASE_RENEWAL_SECONDS = 0.05  # type: ignore[attr-defined]
    held = HeldRequest(reservation())
    await reserve(held.reservation, policy(), is_fresh=True)
    lease_keeper().hold(held)
    loop_store.zadd(held.reservation.keys.open, {"r1": 5})
    await until(lambda: (loop_store.zscore(held.reservation.keys.open, "r1") or 0) > 5)
    lease_keeper().drop(held)
    task = lease_keeper()._task
    assert task is not None
    await asyncio.wait_for(task, 10)


async def test_what_redis_lost_in_its_last_moments_is_restored(
    redis_server: RedisServer,
    keeper: LeaseKeeper,
    reservation: MakeReservation,
    policy: MakePolicy,
    settings: object,
) -> None:
    settings.REDIS_URL = redis_server.url  # type: ignore[attr-defined]
    held = HeldRequest(reservation())
    assert isinstance(await reserve(held.reservation, policy(), is_fresh=True), Reserved)
    keeper.hold(held)
    with redis.Redis.from_url(redis_server.url) as client:
        client.flushall()
    redis_server.stop()  # killed, it may not have written to its file that it was emptied
    redis_server.start()
    await keeper.renew()
    with redis.Redis.from_url(redis_server.url) as client:
        assert client.hget(held.reservation.keys.reservation, "tenant_name") == b"Acme"
        assert client.zcard(held.reservation.keys.tenant_leases) == 1
    assert held.heard == ["policy changed"]  # the epoch is gone as well
    assert await settle(held.reservation.keys, {})
