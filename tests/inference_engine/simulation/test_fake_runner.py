"""The fake keeps the real runner's promises: tokens depend on seed, choice, position and prompt alone."""

import time
from typing import Any

from inference_engine.contract.requests import Generate
from inference_engine.scheduling.request import Request
from inference_engine.scheduling.step_plan import SampledToken, ScheduledChunk, StepPlan
from inference_engine.simulation.fake_runner import FakeRunner, FakeSpeed
from stand_ins.loop_under_test import generate


def runner(**changes: Any) -> FakeRunner:
    return FakeRunner(**{"num_blocks": 8, "vocab_size": 100, "avoid_ids": [0, 50], **changes})


def sample(fake: FakeRunner, message: Generate, position: int) -> SampledToken:
    """The token at this absolute position; only where the chunk ends matters to the fake."""
    request = Request(message, arrival=1, max_tokens=1000, end_ids=frozenset())
    chunk = ScheduledChunk(request, 0, [1] * position, [], samples=True)
    token = fake.run(StepPlan(1, [chunk])).sampled[0]
    assert token is not None
    return token


def tokens(fake: FakeRunner, message: Generate, count: int = 40) -> list[int]:
    start = len(message.prompt_ids)
    return [sample(fake, message, start + i).token_id for i in range(count)]


def test_equal_requests_get_equal_tokens_from_any_runner() -> None:
    assert tokens(runner(), generate("a")) == tokens(runner(), generate("b", tenant_id="bob"))


def test_seed_choice_and_prompt_each_make_a_difference() -> None:
    variants = [
        generate("a"),
        generate("a", seed=8),
        generate("a", seed=-(2**63)),
        generate("a", choice=1),
        generate("a", prompt=5),
        generate("a", prompt=[9, 9, 9, 9]),
    ]
    assert len({tuple(tokens(runner(), each)) for each in variants}) == len(variants)


def test_tokens_vary_and_avoided_ids_never_come() -> None:
    seen = set(tokens(runner(), generate("a"), 2000))
    assert seen == set(range(100)) - {0, 50}


def test_an_end_id_comes_only_when_asked_for_and_then_where_asked() -> None:
    fake = runner(end_id=50, end_after=3)
    assert 50 not in tokens(fake, generate("a"), 3)
    assert tokens(fake, generate("a"), 6)[3:] == [50] * 3


def test_chunks_that_do_not_sample_have_no_token() -> None:
    request = Request(generate("a"), arrival=1, max_tokens=8, end_ids=frozenset())
    plan = StepPlan(1, [ScheduledChunk(request, 0, [1, 2], [0], samples=False)])
    assert runner().run(plan).sampled == [None]


def test_logprobs_are_finite_ordered_and_as_many_as_asked() -> None:
    assert sample(runner(), generate("a"), 4).logprob is None
    token = sample(runner(), generate("a", logprobs=3), 4)
    assert token.logprob is not None and token.logprob < 0
    assert len(token.top) == 3
    assert [logprob for _, logprob in token.top] == sorted(
        (logprob for _, logprob in token.top), reverse=True
    )


def test_a_step_takes_at_least_the_time_it_is_told() -> None:
    fake = runner(speed=FakeSpeed(step_ms=20, token_us=5000))
    started = time.perf_counter()
    sample(fake, generate("a"), 4)
    assert time.perf_counter() - started >= 0.04
