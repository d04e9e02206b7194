"""The bound of fair.py on two backlogged tenants, held by the real scheduler under anything drawn."""

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inference_engine.contract.requests import Generate, ServiceClass
from inference_engine.contract.sampling import SamplingParams
from inference_engine.scheduling.scheduler import Scheduler, SchedulerConfig
from inference_engine.scheduling.step_plan import SampledToken, StepResult

MAX_PROMPT = 60
MAX_OUTPUT = 40

configs = st.builds(
    SchedulerConfig,
    num_blocks=st.integers(8, 60),
    max_running=st.integers(1, 8),
    context_length=st.just(MAX_PROMPT + MAX_OUTPUT),
    vocab_size=st.just(50),
    cache_secret=st.just(b"secret"),
    max_step_tokens=st.integers(20, 200),
    prefill_budget=st.integers(4, 64),
    policy=st.just("fair"),
    enable_prefix_cache=st.booleans(),
)
sizes = st.lists(
    st.tuples(st.integers(1, MAX_PROMPT), st.integers(1, MAX_OUTPUT)), min_size=1, max_size=6
)  # of a tenant's requests, in turn
TENANTS = st.dictionaries(
    st.sampled_from("abcd"), st.tuples(sizes, st.sampled_from([1.0, 2.0])), min_size=2, max_size=4
)


class Backlogged:
    """Keeps three requests of every tenant waiting, and notes each tenant's counter after every step."""

    def __init__(self, config: SchedulerConfig, tenants: dict) -> None:
        self.scheduler = Scheduler(config)
        self.tenants = tenants
        self.num_sent = dict.fromkeys(tenants, 0)
        self.counters: list[dict[str, float]] = []

    def run(self, num_steps: int) -> None:
        for _ in range(num_steps):
            for tenant in self.tenants:
                while self.scheduler.roster.num_waiting_by_tenant[tenant] < 3:
                    self.scheduler.add(self.generate(tenant))
            plan = self.scheduler.plan()
            sampled = [SampledToken(7) if chunk.samples else None for chunk in plan.chunks]
            self.scheduler.apply(plan, StepResult(sampled))
            if self.scheduler.config.policy == "fair":
                self.counters.append({t: self.scheduler.roster.queue.served(t) for t in self.tenants})

    def generate(self, tenant: str) -> Generate:
        sizes, weight = self.tenants[tenant]
        number = self.num_sent[tenant] = self.num_sent[tenant] + 1
        prompt, output = sizes[number % len(sizes)]
        return Generate(
            request_id=f"{tenant}{number}",
            prompt_ids=[number % 50] * prompt,
            sampling=SamplingParams(seed=1, max_tokens=output, ignore_eos=True),
            tenant_id=tenant,
            weight=weight,
            service_class=ServiceClass.STANDARD,
        )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(configs, TENANTS)
def test_services_of_two_backlogged_tenants_stay_within_the_bound(
    config: SchedulerConfig, tenants: dict
) -> None:
    run = Backlogged(config, tenants)
    run.run(250)
    bound = MAX_PROMPT + config.max_running * 2 * MAX_OUTPUT  # at the smallest weight, which is 1
    for counters in run.counters:
        assert max(counters.values()) - min(counters.values()) <= bound
    for start, end in ((0, 249), (100, 200)):
        served = [run.counters[end][t] - run.counters[start][t] for t in tenants]
        assert max(served) - min(served) <= 2 * bound


def test_first_come_first_served_does_not_share_so() -> None:
    """Or the property would prove nothing: here one tenant's requests are ten times as large as the
    other's."""
    fair = SchedulerConfig(
        num_blocks=64,
        max_running=2,
        context_length=MAX_PROMPT + MAX_OUTPUT,
        vocab_size=50,
        cache_secret=b"secret",
        policy="fair",
    )
    num_sent = {}
    for policy in ("fair", "fcfs"):
        run = Backlogged(replace(fair, policy=policy), {"large": ([(60, 40)], 1.0), "small": ([(5, 2)], 1.0)})
        run.run(1_000)
        num_sent[policy] = run.num_sent
    assert num_sent["fair"]["small"] > 5 * num_sent["fair"]["large"]
    assert num_sent["fcfs"]["small"] < 2 * num_sent["fcfs"]["large"]
