"""One request's reservation in Redis: what it holds, how it is taken, closed and given back."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.conf import settings

from quotas.limits import SCOPES, Policy
from quotas.outcomes import Outcome, Reserved, read_outcome
from quotas.reservation_keys import ReservationKeys
from quotas.store import Script, Value, closed_when_unreachable, run_number, run_script

RESERVE, SETTLE, RESTORE = Script("reserve"), Script("settle"), Script("restore")


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
    limits = [*policy.tenant.arguments(), *policy.key.arguments()]
    head: list[Value] = [keys.request_id, policy.epoch, int(is_fresh), lease_ms(), len(SCOPES), *limits]
    async with closed_when_unreachable():
        answer = await run_script(
            RESERVE,
            [keys.epoch, keys.reservation, keys.open, *scope_keys],
            [*head, *_flat(reservation.fields)],
        )
    outcome = read_outcome(answer)
    if isinstance(outcome, Reserved):
        reservation.run_number = run_number()
        reservation.fields["admitted_at"] = f"{outcome.admitted_at:.6f}"
    return outcome


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


def lease_ms() -> int:
    return round(settings.OCTAVO_LEASE_SECONDS * 1000)


async def _close(keys: ReservationKeys, mode: str, row: Mapping[str, str]) -> int:
    return int(await run_script(SETTLE, keys.for_settling(), [keys.request_id, mode, 0, *_flat(row)]))


def _flat(fields: Mapping[str, str]) -> list[str]:
    return [part for pair in fields.items() for part in pair]
