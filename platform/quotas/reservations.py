"""One request's reservation in Redis: what it holds, how it is taken, closed and given back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.conf import settings

from quotas.limits import BUDGETS, TOKENS, LimitKind, LimitRule, Policy
from quotas.outcomes import Outcome, Reserved, TooLarge, read_outcome
from quotas.periods import period_of
from quotas.reservation_keys import ReservationKeys
from quotas.script_calls import Script, Value
from quotas.store import closed_when_unreachable, current_run, run_script

RESERVE, SETTLE, RESTORE = Script("reserve"), Script("settle"), Script("restore")

SETTLED_MARK_MS = 900_000
"""Longer than anybody goes on trying to settle or to renew what somebody else has settled."""

_UNITS = {LimitKind.REQUESTS_PER_MINUTE: "requests", LimitKind.TOKENS_PER_MINUTE: "tokens"}


@dataclass(slots=True)
class Reservation:
    """What to reserve, and under what name. `fields` is what the ledger's row needs."""

    keys: ReservationKeys
    tokens: int = 0
    """Reserved of every limit of tokens."""
    fields: dict[str, str] = field(default_factory=dict)


async def reserve(reservation: Reservation, policy: Policy, *, is_fresh: bool, now: float) -> Outcome:
    """All limits or none; the same request id again is the same reservation. Raises STORE_UNAVAILABLE.

    `is_fresh`: the policy was just read from the database, so Redis may take its epoch as known. `now`, in
    Unix seconds, tells the day and the month.
    """
    keys = reservation.keys
    rules = [rule for rule in policy.rules if rule.applies_to(keys.model)]
    for rule in rules:
        if rule.kind in TOKENS and reservation.tokens > rule.value:
            return TooLarge(rule)
    counters, limits = _limits(keys, rules, policy.time_zone, now)
    fields = {**reservation.fields, "reserved_tokens": str(reservation.tokens), **_budgets(counters)}
    async with closed_when_unreachable():
        answer = await run_script(
            RESERVE,
            [keys.epoch, keys.reservation, keys.open, *keys.all_leases, *counters],
            [
                *(keys.request_id, policy.epoch, int(is_fresh), lease_ms(), reservation.tokens),
                *(current_run(), len(rules), *limits, *_flat(fields)),
            ],
        )
    outcome = read_outcome(answer, rules)
    if isinstance(outcome, Reserved):
        reservation.fields = fields | {"admitted_at": f"{outcome.admitted_at:.6f}"}
    return outcome


async def settle(keys: ReservationKeys, row: Mapping[str, str]) -> bool:
    """Whether this call closed it. Idempotent. `row` is whole: Redis may have lost the reservation.

    Raises RedisError.
    """
    return await _close(keys, "settle", row) == 1


async def release(keys: ReservationKeys) -> None:
    """Give everything back without a ledger row: it was not admitted after all. Raises RedisError."""
    await _close(keys, "release", {})


async def restore(reservation: Reservation) -> None:
    """Raises RedisError."""
    keys = reservation.keys
    await run_script(
        RESTORE,
        [keys.open, keys.reservation, keys.settled, *keys.all_leases],
        [keys.request_id, lease_ms(), *_flat(reservation.fields)],
    )


def lease_ms() -> int:
    return round(settings.OCTAVO_LEASE_SECONDS * 1000)


def settle_arguments(
    keys: ReservationKeys, mode: str, row: Mapping[str, str], before_ms: int = 0
) -> tuple[list[str], list[Value]]:
    """Keys and arguments of lua/settle.lua."""
    return keys.for_settling(), [keys.request_id, mode, before_ms, SETTLED_MARK_MS, *_flat(row)]


async def _close(keys: ReservationKeys, mode: str, row: Mapping[str, str]) -> int:
    return int(await run_script(SETTLE, *settle_arguments(keys, mode, row)))


def _limits(
    keys: ReservationKeys, rules: Sequence[LimitRule], time_zone: str, now: float
) -> tuple[list[str], list[Value]]:
    """The counter of each rule, and the rules as lua/reserve.lua takes them."""
    counters: list[str] = []
    arguments: list[Value] = []
    for rule in rules:
        if rule.kind in BUDGETS:
            period = period_of(rule.kind, now, time_zone)
            counters.append(keys.budget(rule, period))
            arguments += ["budget", rule.value, period.start, period.end]
        elif rule.kind in _UNITS:
            counters.append(keys.rate(rule))
            arguments += [_UNITS[rule.kind], rule.value, rule.capacity, 0]
        else:
            counters.append(keys.leases(rule.scope))
            arguments += ["concurrent", rule.value, 0, 0]
    return counters, arguments


def _budgets(counters: Sequence[str]) -> dict[str, str]:
    """The reservation names its budgets: who settles it needs to know nothing of limits."""
    return {f"budget:{name}": "1" for name in counters if ":budget:" in name}


def _flat(fields: Mapping[str, str]) -> list[str]:
    return [part for pair in fields.items() for part in pair]
