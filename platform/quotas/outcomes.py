"""What came of trying to reserve."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from quotas.limits import TOKENS, LimitKind, LimitRule


@dataclass(frozen=True, slots=True)
class RateState:
    """One limit after this request. Seconds."""

    limit: int
    remaining: int
    reset_s: float


@dataclass(frozen=True, slots=True)
class RateStates:
    """The tightest limits that apply, of requests and of tokens; None where there are none."""

    requests: RateState | None = None
    tokens: RateState | None = None


@dataclass(frozen=True, slots=True)
class Reserved:
    rates: RateStates
    admitted_at: float
    """Unix seconds, by the clock of Redis."""


@dataclass(frozen=True, slots=True)
class Stale:
    """The principal's epoch is not the current one, or Redis does not know the current one."""


@dataclass(frozen=True, slots=True)
class OtherPeriod:
    """By the clock of Redis another day has begun, or not yet."""

    now: float


@dataclass(frozen=True, slots=True)
class Cold:
    """Redis doesn't know what was spent of these."""

    rules: tuple[LimitRule, ...]


@dataclass(frozen=True, slots=True)
class NoRoom:
    """`rule` is the one that keeps the request out longest; `is_final`: nothing but a new period helps."""

    rule: LimitRule
    retry_after_s: float
    is_final: bool = False
    rates: RateStates = RateStates()
    now: float = 0.0


@dataclass(frozen=True, slots=True)
class TooLarge:
    """More tokens than the whole limit: it can never be admitted."""

    rule: LimitRule


Outcome = Reserved | Stale | OtherPeriod | Cold | NoRoom | TooLarge


def read_outcome(answer: Sequence[Any], rules: Sequence[LimitRule]) -> Outcome:
    """From the answer of lua/reserve.lua for `rules`."""
    match answer[0]:
        case b"stale":
            return Stale()
        case b"clock":
            return OtherPeriod(answer[1] / 1e6)
        case b"cold":
            return Cold(tuple(rules[number - 1] for number in answer[1:]))
        case b"full":
            number, wait_us, is_final, now_us, states = answer[1:]
            rates = _rate_states(states, rules)
            return NoRoom(rules[number - 1], wait_us / 1e6, bool(is_final), rates, now_us / 1e6)
        case _:
            return Reserved(_rate_states(answer[2], rules), answer[1] / 1e6)


def _rate_states(states: Sequence[int], rules: Sequence[LimitRule]) -> RateStates:
    known = list(zip(rules, states[::2], states[1::2], strict=True))
    return RateStates(
        requests=_tightest([one for one in known if one[0].kind is LimitKind.REQUESTS_PER_MINUTE]),
        tokens=_tightest([one for one in known if one[0].kind in TOKENS]),
    )


def _tightest(known: list[tuple[LimitRule, int, int]]) -> RateState | None:
    if not known:
        return None
    rule, remaining, reset_us = min(known, key=itemgetter(1))
    return RateState(rule.value, max(0, remaining), reset_us / 1e6)
