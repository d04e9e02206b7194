"""Random life against the real scheduler on the chain model.

CheckedScheduler raises BrokenInvariant at once: after every act for the state, at every plan for the steps in
flight, and at every token that is not the one the request's known ids alone determine.
"""

from collections import Counter
from itertools import chain
from typing import ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec import structs

from inference_engine.contract.events import Accepted
from inference_engine.contract.requests import Generate, ServiceClass, TenantShare
from inference_engine.contract.sampling import SamplingParams
from inference_engine.scheduling.policies import POLICIES
from inference_engine.scheduling.scheduler import SchedulerConfig
from inference_engine.simulation.checked_scheduler import CheckedScheduler

VOCAB_SIZE = 11
END_ID = 3
SEEN = (
    "num_finished",
    "num_accepted_tokens",
    "num_aborted",
    "num_failed",
    "num_refused",
    "num_preemptions",
    "num_recomputed_tokens",
    "cached_prompt_tokens",
)
PAGES = [[(7 * page + position) % VOCAB_SIZE for position in range(16)] for page in range(3)]

configs = st.builds(
    SchedulerConfig,
    num_blocks=st.integers(4, 14),
    max_running=st.integers(2, 6),
    context_length=st.just(140),
    vocab_size=st.just(VOCAB_SIZE),
    cache_secret=st.just(b"secret"),
    max_step_tokens=st.integers(7, 80),
    prefill_budget=st.integers(1, 40),
    max_waiting=st.just(8),
    policy=st.sampled_from(sorted(POLICIES)),
    ageing_tokens=st.sampled_from([50, 5_000]),
    lag=st.sampled_from([0, 1]),
    enable_prefix_cache=st.sampled_from([True, True, False]),
    end_ids=st.just(frozenset({END_ID})),
)
token_ids = st.lists(st.integers(0, VOCAB_SIZE - 1), max_size=20)
prompts = st.builds(
    lambda pages, rest: [*chain.from_iterable(pages), *rest] or [0],
    st.lists(st.sampled_from(PAGES), max_size=4),
    token_ids,
)
samplings = st.builds(
    SamplingParams,
    seed=st.integers(0, 3),
    max_tokens=st.integers(1, 90),
    min_tokens=st.sampled_from([0, 0, 5]),
    stop_token_ids=st.sampled_from([(), (), (), (5,)]),
    ignore_eos=st.sampled_from([True, True, True, False]),
    num_draft_tokens=st.sampled_from([0, 0, 2, 8]),
)
generates = st.builds(
    Generate,
    request_id=st.just("r"),
    prompt_ids=prompts,
    output_ids=st.one_of(st.just([]), st.just([]), token_ids),
    sampling=samplings,
    tenant_id=st.sampled_from(["alice", "bob"]),
    key_id=st.sampled_from(["", "key"]),
    service_class=st.sampled_from(ServiceClass),
    weight=st.sampled_from([1.0, 3.0]),
)
shares = st.dictionaries(
    st.sampled_from(["alice", "bob"]),
    st.builds(
        TenantShare,
        weight=st.sampled_from([1.0, 3.0]),
        max_kv_fraction=st.sampled_from([0.3, 0.6, 1.0]),
        max_queued_requests=st.sampled_from([None, 4]),
        max_queued_tokens=st.sampled_from([None, 200]),
    ),
)
failures = st.sampled_from([None] * 9 + [4])
"""After how many more tokens sampling fails."""


class SchedulerMachine(RuleBasedStateMachine):
    seen: ClassVar[Counter[str]]

    @initialize(config=configs)
    def start(self, config: SchedulerConfig) -> None:
        self.checked = CheckedScheduler(config)
        self.num_requests = 0

    @rule(arrivals=st.lists(st.tuples(generates, failures), min_size=1, max_size=4))
    def add(self, arrivals: list[tuple[Generate, int | None]]) -> None:
        for drawn, fails_after in arrivals:
            self.num_requests += 1
            generate = structs.replace(drawn, request_id=f"r{self.num_requests}")
            num_known = len(generate.prompt_ids) + len(generate.output_ids)
            answer = self.checked.add(generate, None if fails_after is None else num_known + fails_after)
            if isinstance(answer, Accepted):
                assert answer.cached_tokens < num_known
                assert len(generate.output_ids) < answer.max_tokens <= generate.sampling.max_tokens

    @rule(drawn=generates, seeds=st.lists(st.integers(0, 3), min_size=2, max_size=4), data=st.data())
    def add_group(self, drawn: Generate, seeds: list[int], data) -> None:
        """n > 1: one prompt, other seeds; one choice may have been moved here with outputs."""
        group_id = f"g{self.num_requests}"
        for choice, seed in enumerate(seeds):
            self.num_requests += 1
            generate = structs.replace(
                drawn,
                request_id=f"r{self.num_requests}",
                group_id=group_id,
                choice=choice,
                output_ids=data.draw(st.sampled_from([[], drawn.output_ids])),
                sampling=structs.replace(drawn.sampling, seed=seed),
            )
            self.checked.add(generate)

    @rule(shares=shares)
    def limit(self, shares: dict[str, TenantShare]) -> None:
        self.checked.set_tenant_shares(shares)

    @precondition(lambda self: self.checked.scheduler.requests)
    @rule(data=st.data())
    def abort(self, data) -> None:
        request_id = data.draw(st.sampled_from(sorted(self.checked.scheduler.requests)))
        assert self.checked.abort(request_id) is not None

    @precondition(lambda self: self.checked.can_plan())
    @rule()
    def plan(self) -> None:
        self.checked.plan()

    @precondition(lambda self: self.checked.in_flight)
    @rule()
    def apply(self) -> None:
        self.checked.apply()

    @rule(num_turns=st.integers(1, 30))
    def run_on(self, num_turns: int) -> None:
        for _ in range(num_turns):
            self.checked.turn()

    def teardown(self) -> None:
        if hasattr(self, "checked"):
            while self.checked.in_flight:
                self.checked.apply()
            self.checked.drain(5_000)
            stats = self.checked.scheduler.stats()
            self.seen.update({name: getattr(stats, name) for name in SEEN})
            self.seen["forks"] += self.checked.num_forks


def test_random_life_breaks_no_invariant_and_sees_everything():
    SchedulerMachine.seen = Counter()
    run_state_machine_as_test(
        SchedulerMachine,
        settings=settings(
            max_examples=80,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
    assert all(SchedulerMachine.seen[name] for name in (*SEEN, "forks")), SchedulerMachine.seen
