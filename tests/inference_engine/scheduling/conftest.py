"""Schedulers small enough to think about: blocks of 16, ids below 1000, end id 2, a queue for all."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from inference_engine.contract.requests import Generate
from inference_engine.contract.sampling import SamplingParams
from inference_engine.scheduling.request import Request
from inference_engine.scheduling.scheduler import Scheduler, SchedulerConfig
from inference_engine.scheduling.step_plan import RequestUpdate, SampledToken, StepPlan, StepResult
from inference_engine.simulation.checked_scheduler import CheckedScheduler

SMALL = SchedulerConfig(
    num_blocks=64,
    max_running=8,
    context_length=2048,
    vocab_size=1000,
    cache_secret=b"a secret of this engine",
    policy="fcfs",
    end_ids=frozenset({2}),
)


def make_generate(request_id: str = "r", prompt: int | list[int] = 10, **fields: object) -> Generate:
    """`prompt`: ids, or a length. Fields of SamplingParams and of Generate may be mixed."""
    if isinstance(prompt, int):
        start = sum(request_id.encode()) % 300
        prompt = [10 + (start + position) % 900 for position in range(prompt)]
    sampling = {name: fields.pop(name) for name in list(fields) if name in SamplingParams.__struct_fields__}
    sampling = {"seed": 1, "max_tokens": 20, **sampling}
    given = {"tenant_id": "alice", **fields}
    return Generate(request_id=request_id, prompt_ids=prompt, sampling=SamplingParams(**sampling), **given)


def make_request(arrival: int, prompt: int | list[int] = 10, **fields: object) -> Request:
    generate = make_generate(f"r{arrival}", prompt, **fields)
    return Request(generate, arrival=arrival, max_tokens=20, end_ids=frozenset())


class ScriptedEngine:
    """A scheduler whose sampled tokens the test chooses."""

    def __init__(self, config: SchedulerConfig) -> None:
        self.scheduler = Scheduler(config)

    def plan(self) -> StepPlan:
        plan = self.scheduler.plan()
        assert plan is not None
        return plan

    def apply(self, plan: StepPlan, token: int | SampledToken = 7) -> list[RequestUpdate]:
        """`token` for every chunk that samples."""
        sampled = token if isinstance(token, SampledToken) else SampledToken(token)
        updates = self.scheduler.apply(
            plan, StepResult([sampled if c.samples else None for c in plan.chunks])
        )
        self.scheduler.check_integrity()
        return updates

    def step(self, token: int | SampledToken = 7) -> list[RequestUpdate]:
        return self.apply(self.plan(), token)

    def add(self, request_id: str = "r", prompt: int | list[int] = 10, **fields: object):
        return self.scheduler.add(make_generate(request_id, prompt, **fields))


@pytest.fixture
def engine() -> Callable[..., ScriptedEngine]:
    return lambda **fields: ScriptedEngine(replace(SMALL, **fields))


@pytest.fixture
def checked() -> Callable[..., CheckedScheduler]:
    """The same on the chain model, checked after every act."""
    return lambda **fields: CheckedScheduler(replace(SMALL, **fields))


@pytest.fixture
def generate() -> Callable[..., Generate]:
    return make_generate


@pytest.fixture
def request_of() -> Callable[..., Request]:
    """(arrival, prompt, fields): a request that no scheduler has."""
    return make_request
