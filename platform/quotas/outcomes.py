"""What came of trying to reserve."""

from dataclasses import dataclass

from quotas.limits import SCOPES


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
    admitted_at: float
    """Unix seconds, by the clock of Redis."""


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


def read_outcome(answer: list[bytes | int]) -> Outcome:
    """From the answer of lua/reserve.lua."""
    kind = answer[0]
    numbers = [int(number) for number in answer[1:]]
    if kind == b"stale":
        return Stale()
    if kind == b"concurrency":
        return NoRoom(SCOPES[numbers[0] - 1], numbers[1])
    if kind == b"rate":
        scope, limit, retry_us, reset_us = numbers
        return NoRoom(SCOPES[scope - 1], limit, RateState(limit, 0, reset_us / 1e6, retry_us / 1e6))
    scope, limit, remaining, reset_us, now_us = numbers
    return Reserved(RateState(limit, remaining, reset_us / 1e6) if scope else None, now_us / 1e6)
