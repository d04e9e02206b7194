"""Keeps this process's leases alive: every half second (bulk workers: every two) all are renewed, and the
policy epochs read."""

import asyncio
from collections import defaultdict
from typing import NamedTuple, Protocol
from weakref import WeakKeyDictionary

import structlog
from django.conf import settings
from redis.exceptions import RedisError

from quotas.reservations import Reservation, lease_ms, restore
from quotas.script_calls import Script, Value
from quotas.store import run_script
from tenants.shards import bucket, bucket_key

log = structlog.get_logger(__name__)

RENEW = Script("renew")
LEASES_AT_ONCE = 25
"""In one call: hundreds would keep Redis and this process from admitting anybody for milliseconds."""
FORGOTTEN, SETTLED = 0, -1
"""Answers of lua/renew.lua for a lease that it could not renew."""


class Progress(NamedTuple):
    """What a request has used so far; `first_token_at` in Unix seconds, None before it."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    overrun_tokens: int = 0
    first_token_at: float | None = None

    def fields(self) -> tuple[str, ...]:
        return tuple("" if value is None else str(value) for value in self)


class Lease(Protocol):
    """One admitted request, as the keeper sees it."""

    reservation: Reservation
    policy_epoch: int

    def progress(self) -> Progress: ...

    def policy_changed(self) -> None:
        """The tenant's epoch has risen, or Redis doesn't know it."""

    def lost(self) -> None:
        """The lease had expired and was settled by the sweeper: the place belongs to somebody else."""


class LeaseKeeper:
    """Renews while anything is held; belongs to one event loop."""

    def __init__(self) -> None:
        self.interval_s: float = settings.OCTAVO_LEASE_RENEWAL_SECONDS
        """Between two renewals: as long, too, may pass until a policy's change is noticed."""
        self._leases: dict[str, Lease] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def num_held(self) -> int:
        return len(self._leases)

    def hold(self, lease: Lease) -> None:
        self._leases[lease.reservation.keys.request_id] = lease
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="lease-keeper")

    def drop(self, lease: Lease) -> None:
        self._leases.pop(lease.reservation.keys.request_id, None)

    async def _run(self) -> None:
        while self._leases:
            await asyncio.sleep(self.interval_s)
            try:
                await self.renew()
            except (RedisError, OSError) as error:
                log.warning("lease_renewal_failed", num_leases=self.num_held, error=str(error))

    async def renew(self) -> None:
        """Raises RedisError."""
        by_bucket: dict[int, list[Lease]] = defaultdict(list)
        for lease in self._leases.values():
            by_bucket[bucket(lease.reservation.keys.tenant_id)].append(lease)
        for number, leases in by_bucket.items():
            for start in range(0, len(leases), LEASES_AT_ONCE):
                await self._renew_some(number, leases[start : start + LEASES_AT_ONCE])

    async def _renew_some(self, number: int, leases: list[Lease]) -> None:
        answers = await run_script(RENEW, *_call(number, leases))
        for lease, (state, epoch) in zip(leases, answers, strict=True):
            await self._heed(lease, state, epoch)

    async def _heed(self, lease: Lease, state: int, epoch: int) -> None:
        reservation = lease.reservation
        if reservation.keys.request_id not in self._leases:
            return  # it ended while the answer was under way
        if state == SETTLED:
            self.drop(lease)
            lease.lost()
            return
        if state == FORGOTTEN:
            await restore(reservation)
        if epoch != lease.policy_epoch:
            lease.policy_changed()


def _call(number: int, leases: list[Lease]) -> tuple[list[str], list[Value]]:
    keys = [bucket_key(number, "open")]
    args: list[Value] = [lease_ms()]
    for lease in leases:
        names = lease.reservation.keys
        keys += [names.reservation, names.settled, *names.all_leases, names.epoch]
        args += [names.request_id, *lease.progress().fields()]
    return keys, args


_keepers: WeakKeyDictionary[asyncio.AbstractEventLoop, LeaseKeeper] = WeakKeyDictionary()


def lease_keeper() -> LeaseKeeper:
    """This event loop's keeper."""
    loop = asyncio.get_running_loop()
    keeper = _keepers.get(loop)
    if keeper is None:
        keeper = _keepers[loop] = LeaseKeeper()
    return keeper
