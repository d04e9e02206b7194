"""Random lives of reservations against what limits promise, in a real Redis with a clock moved by hand."""

import itertools
from dataclasses import dataclass
from typing import ClassVar

import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from clock_of_tests import MICROSECONDS, Loop, MovableClock, moved_by_hand
from quotas import reservations
from quotas.budget_loading import load_budgets
from quotas.limits import LimitKind, LimitRule, LimitScope, Policy
from quotas.outcomes import Cold, NoRoom, Outcome, Reserved, TooLarge
from quotas.periods import period_of
from quotas.reservation_keys import ReservationKeys
from quotas.reservations import Reservation
from quotas.store import close_async_redis

MINUTE_US = 60 * MICROSECONDS


@dataclass
class Admitted:
    reservation: Reservation
    at_us: int
    cost: int
    used: int | None = None

    @property
    def weight(self) -> int:
        """What it counts: all that it reserved, until it is known what it used."""
        return self.cost if self.used is None else self.used


class Quotas(RuleBasedStateMachine):
    client: ClassVar[redis.Redis]
    clock: ClassVar[MovableClock]
    loop: ClassVar[Loop]
    number: ClassVar["itertools.count[int]"] = itertools.count(1)

    @initialize(
        per_minute=st.sampled_from([1, 7, 60, 1000, 999_983]),
        burst=st.sampled_from([None, 1, 50, 1000]),
        budget=st.sampled_from([1, 100, 5000, 10**9]),
    )
    def begin(self, per_minute: int, burst: int | None, budget: int) -> None:
        self.rate = LimitRule(LimitScope.TENANT, LimitKind.TOKENS_PER_MINUTE, per_minute, burst)
        self.budget = LimitRule(LimitScope.TENANT, LimitKind.TOKENS_PER_MONTH, budget)
        self.tenant_id = str(next(self.number))
        self.largest = self.rate.capacity
        self.admitted: list[Admitted] = []

    def reserve(self, cost: int) -> tuple[Reservation, Outcome]:
        keys = ReservationKeys(self.tenant_id, "k", f"r{next(self.number)}", "m")
        fields = {"tenant_id": self.tenant_id, "key_id": "k", "model": "m", "request_id": keys.request_id}
        reservation, policy = Reservation(keys, cost, fields), Policy(1, (self.rate, self.budget))
        now = self.clock.now
        outcome = self.loop.run(reservations.reserve(reservation, policy, is_fresh=True, now=now))
        if isinstance(outcome, Cold):
            self.loop.run(load_budgets(keys, outcome.rules, "UTC", now))
            outcome = self.loop.run(reservations.reserve(reservation, policy, is_fresh=True, now=now))
        return reservation, outcome

    @rule(share=st.floats(0.001, 1.5))
    def ask(self, share: float) -> None:
        cost = max(1, int(self.rate.value * share))
        reservation, outcome = self.reserve(cost)
        if isinstance(outcome, Reserved):
            self.note(reservation, cost)
        elif isinstance(outcome, NoRoom) and outcome.rule == self.rate:
            self.come_back(cost, outcome.retry_after_s)
        else:
            assert isinstance(outcome, NoRoom | TooLarge)

    def note(self, reservation: Reservation, cost: int) -> None:
        self.largest = max(self.largest, cost)
        self.admitted.append(Admitted(reservation, self.clock.now_us, cost))

    def come_back(self, cost: int, retry_after_s: float) -> None:
        """The time named is the first at which it is admitted."""
        wait_us = round(retry_after_s * MICROSECONDS)
        if wait_us > 2:
            self.clock.advance(wait_us - 2)
            assert isinstance(self.reserve(cost)[1], NoRoom)
            wait_us = 2
        self.clock.advance(wait_us)
        reservation, outcome = self.reserve(cost)
        if isinstance(outcome, Reserved):
            self.note(reservation, cost)
        else:
            assert isinstance(outcome, NoRoom) and outcome.rule == self.budget

    @rule(share=st.floats(0, 1), microseconds=st.sampled_from([0, 1, 500, 10**6, 10**7]))
    def wait(self, share: float, microseconds: int) -> None:
        self.clock.advance(int(MINUTE_US * share * share) + microseconds)

    @precondition(lambda self: any(one.used is None for one in self.admitted))
    @rule(data=st.data(), share=st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    def settle(self, data: st.DataObject, share: float) -> None:
        one = data.draw(st.sampled_from([one for one in self.admitted if one.used is None]))
        used = int(one.cost * share)
        row = {"prompt_tokens": str(used // 2), "output_tokens": str(used - used // 2)}
        assert self.loop.run(reservations.settle(one.reservation.keys, {**one.reservation.fields, **row}))
        one.used = used

    @invariant()
    def no_interval_holds_more_than_burst_and_rate(self) -> None:
        if not self.admitted:
            return
        last, total = self.admitted[-1], 0
        for first in reversed(self.admitted):
            total += first.weight
            seconds = (last.at_us - first.at_us) / MICROSECONDS
            assert total <= self.largest + self.rate.value / 60 * seconds + 1e-3

    @invariant()
    def spent_and_reserved_are_exact_and_within_the_budget(self) -> None:
        if not self.admitted:
            return
        name = self.admitted[0].reservation.keys.budget(
            self.budget, period_of(self.budget.kind, self.clock.now, "UTC")
        )
        spent, reserved = (int(value or 0) for value in self.client.hmget(name, "spent", "reserved"))  # type: ignore[union-attr]
        assert spent == sum(one.used or 0 for one in self.admitted)
        assert reserved == sum(one.cost for one in self.admitted if one.used is None)
        assert spent + reserved <= self.budget.value


@pytest.mark.usefixtures("transactional_db")
def test_rates_with_refunds_and_budgets_keep_their_promises(redis_url: str) -> None:
    store = redis.Redis.from_url(redis_url)
    for name in store.scan_iter("octavo:{b:*", count=1000):
        store.delete(name)
    Quotas.client, Quotas.loop = store, Loop()
    with moved_by_hand(store) as clock:
        Quotas.clock = clock
        run_state_machine_as_test(  # type: ignore[no-untyped-call]
            Quotas,
            settings=settings(
                max_examples=25,
                stateful_step_count=25,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    Quotas.loop.run(close_async_redis())
    Quotas.loop.close()
