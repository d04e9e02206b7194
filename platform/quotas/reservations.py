"""One request's reservation in Redis: what it holds, how it is taken, closed and given back."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.conf import settings

from quotas.store import Script, Value, async_redis, closed_when_unreachable, run_number, run_script
from tenants.policy_epochs import SET_IF_GREATER
from tenants.shards import epoch_key, tenant_key
from usage.stream import stream_key

RESERVE, SETTLE, RESTORE = Script("reserve"), Script("settle"), Script("restore")
NO_LIMIT = -1
SCOPES = ("tenant", "key")


@dataclass(frozen=True, slots=True)
class ReservationKeys:
    """Every Redis key that one reservation touches; all in its tenant's bucket."""

    tenant_id: str
    key_id: str
    request_id: str

    @property
    def reservation(self) -> str:
        return tenant_key(self.tenant_id, f"reservation:{self.request_id}")

    @property
    def open(self) -> str:
        return tenant_key(self.tenant_id, "open")

    @property
    def ledger(self) -> str:
        return stream_key(self.tenant_id)

    @property
    def epoch(self) -> str:
        return epoch_key(self.tenant_id)

    @property
    def tenant_leases(self) -> str:
        return tenant_key(self.tenant_id, f"leases:tenant:{self.tenant_id}")

    @property
    def key_leases(self) -> str:
        return tenant_key(self.tenant_id, f"leases:key:{self.key_id}")

    def rate(self, scope: str) -> str:
        return tenant_key(
            self.tenant_id, f"rate:{scope}:{self.tenant_id if scope == 'tenant' else self.key_id}"
        )


@dataclass(frozen=True, slots=True)
class RateState:
    """The tightest requests-per-minute limit that applies, after this request. Seconds."""

    limit: int
    remaining: int
    reset_s: float
    retry_after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Reserved:
    rate: RateState | None


@dataclass(frozen=True, slots=True)
class Stale:
    """The principal's epoch is not the current one, or Redis does not know the current one."""


@dataclass(frozen=True, slots=True)
class NoRoom:
    """A limit is reached: `rate` for requests/min, else concurrency of `limit`."""

    scope: str
    limit: int
    rate: RateState | None = None


Outcome = Reserved | Stale | NoRoom


@dataclass(frozen=True, slots=True)
class ScopeLimits:
    """None: unlimited."""

    max_concurrent: int | None = None
    requests_per_minute: int | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """What a reservation is measured against, and the epoch it is from."""

    epoch: int
    tenant: ScopeLimits
    key: ScopeLimits


@dataclass(slots=True)
class Reservation:
    """What to reserve, and under what name. `fields` is what the ledger's row needs."""

    keys: ReservationKeys
    fields: dict[str, str] = field(default_factory=dict)
    run_number: int = 0
    """store.run_number() when it was last known to be written."""


async def reserve(reservation: Reservation, policy: Policy, *, is_fresh: bool) -> Outcome:
    """All scopes or none; the same request id again is the same reservation. Raises STORE_UNAVAILABLE.

    `is_fresh`: the policy was just read from the database, so Redis may take its epoch as known.
    """
    keys = reservation.keys
    scope_keys = [keys.tenant_leases, keys.rate("tenant"), keys.key_leases, keys.rate("key")]
    limits = [*_limits(policy.tenant), *_limits(policy.key)]
    head: list[Value] = [keys.request_id, policy.epoch, int(is_fresh), lease_ms(), len(SCOPES), *limits]
    async with closed_when_unreachable():
        answer = await run_script(
            RESERVE,
            [keys.epoch, keys.reservation, keys.open, *scope_keys],
            [*head, *_flat(reservation.fields)],
        )
    reservation.run_number = run_number()
    return _outcome(answer)


async def settle(keys: ReservationKeys, row: Mapping[str, str], *, again: bool = False) -> bool:
    """Whether this call closed it. Idempotent; `again`: Redis may have lost it. Raises RedisError."""
    return await _close(keys, "again" if again else "settle", row) == 1


async def release(keys: ReservationKeys) -> None:
    """Free the places without a ledger row: the request was not admitted after all. Raises RedisError."""
    await _close(keys, "release", {})


async def restore(reservation: Reservation) -> None:
    """Raises RedisError."""
    keys = reservation.keys
    await run_script(
        RESTORE,
        [keys.open, keys.reservation, keys.tenant_leases, keys.key_leases],
        [keys.request_id, lease_ms(), *_flat(reservation.fields)],
    )


async def read_epoch(tenant_id: str) -> int | None:
    """The policy epoch that Redis knows. Raises Denied(STORE_UNAVAILABLE)."""
    async with closed_when_unreachable():
        known = await async_redis().get(epoch_key(tenant_id))
    return None if known is None else int(known)


async def publish_epoch(tenant_id: str, epoch: int) -> None:
    """Raises Denied(STORE_UNAVAILABLE)."""
    async with closed_when_unreachable():
        await async_redis().eval(SET_IF_GREATER, 1, epoch_key(tenant_id), epoch)


def settle_keys(keys: ReservationKeys) -> list[str]:
    return [keys.reservation, keys.open, keys.ledger, keys.tenant_leases, keys.key_leases]


def lease_ms() -> int:
    return round(settings.OCTAVO_LEASE_SECONDS * 1000)


async def _close(keys: ReservationKeys, mode: str, row: Mapping[str, str]) -> int:
    return int(await run_script(SETTLE, settle_keys(keys), [keys.request_id, mode, 0, *_flat(row)]))


def _limits(scope: ScopeLimits) -> tuple[int, int, int]:
    """Max concurrent, requests/min, burst, as the script takes them."""
    per_minute = scope.requests_per_minute
    burst = max(1, round((per_minute or 0) * settings.OCTAVO_RATE_BURST_FRACTION))
    return (
        NO_LIMIT if scope.max_concurrent is None else scope.max_concurrent,
        NO_LIMIT if per_minute is None else per_minute,
        burst,
    )


def _flat(fields: Mapping[str, str]) -> list[str]:
    return [part for pair in fields.items() for part in pair]


def _outcome(answer: list[bytes | int]) -> Outcome:
    kind = answer[0]
    numbers = [int(number) for number in answer[1:]]
    if kind == b"stale":
        return Stale()
    if kind == b"concurrency":
        return NoRoom(SCOPES[numbers[0] - 1], numbers[1])
    if kind == b"rate":
        scope, limit, retry_us, reset_us = numbers
        return NoRoom(SCOPES[scope - 1], limit, RateState(limit, 0, reset_us / 1e6, retry_us / 1e6))
    scope, limit, remaining, reset_us, _ = numbers
    return Reserved(RateState(limit, remaining, reset_us / 1e6) if scope else None)
