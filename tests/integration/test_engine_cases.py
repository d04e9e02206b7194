"""Cases 8, 19 and 22 of the list of public faults, on the engine's level: scheduler and model, no server."""

from collections.abc import Callable
from pathlib import Path

import pytest

from engine_harness import EngineHarness, RecordingRunner, Trace
from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.events import Refused
from inference_engine.contract.requests import Generate
from inference_engine.contract.sampling import SamplingParams
from tiny_models import save_tiny_llama

MakeHarness = Callable[..., EngineHarness]


@pytest.fixture(scope="module", params=["tiny", "smollm2"])
def make(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> MakeHarness:
    """Harnesses over one bf16 model, each with a KV pool of its own."""
    if request.param == "tiny":
        folder, backend = save_tiny_llama(tmp_path_factory.mktemp("llama")), "reference"
    else:
        request.getfixturevalue("compiler")
        folder, backend = request.getfixturevalue("smollm2_dir"), "cpu"
    loaded = RecordingRunner.load(
        Path(folder), backend=backend, dtype="bfloat16", num_blocks=64, max_running=16, max_step_tokens=256
    )
    assert loaded.warm().is_invariant

    def harness(num_blocks: int = 64, **settings: object) -> EngineHarness:
        runner = RecordingRunner(loaded.model, loaded.backend, loaded.limits, num_blocks=num_blocks)
        return EngineHarness(runner, **settings)

    return harness


def prompt_of(length: int, salt: int = 0) -> list[int]:
    return [(37 * i * i + 11 * salt + 5) % 200 for i in range(length)]


def alone(make: MakeHarness, prompt: list[int], **sampling: object) -> Trace:
    harness = make()
    trace = harness.add(prompt, **sampling)
    harness.run()
    return trace


SETTINGS = [
    {"temperature": 0.0},
    {"temperature": 0.8, "seed": 42},
    {"temperature": 1.0, "top_p": 0.9, "seed": -7},
]


@pytest.mark.parametrize("sampling", SETTINGS, ids=["greedy", "seeded", "top_p"])
def test_two_requests_that_preempt_each_other_read_as_if_alone(
    make: MakeHarness, sampling: dict[str, float]
) -> None:
    prompts = [prompt_of(50, salt) for salt in (1, 2)]
    expected = [alone(make, prompt, max_tokens=60, **sampling).token_ids for prompt in prompts]
    harness = make(num_blocks=10)
    traces = [harness.add(prompt, max_tokens=60, **sampling) for prompt in prompts]
    harness.run()
    assert sum(trace.request.num_preemptions for trace in traces) > 0
    assert [trace.token_ids for trace in traces] == expected
    assert all(len(set(tokens)) >= 10 for tokens in expected)


@pytest.mark.parametrize("num_neighbours", [1, 3, 7])
def test_seeded_text_is_the_same_beside_neighbours(make: MakeHarness, num_neighbours: int) -> None:
    prompt = prompt_of(20)
    expected = alone(make, prompt, max_tokens=40, temperature=0.8, seed=42).token_ids
    harness = make()
    for index in range(num_neighbours):
        harness.add(prompt_of(9 + index, index + 1), max_tokens=50, temperature=1.0, seed=1000 + index)
        harness.step()
    trace = harness.add(prompt, max_tokens=40, temperature=0.8, seed=42)
    harness.run()
    assert trace.token_ids == expected
    assert len(set(expected)) >= 10


def test_another_seed_and_another_choice_read_otherwise(make: MakeHarness) -> None:
    prompt = prompt_of(20)
    drawn = [(42, 0), (43, 0), (42, 1), (42, 2)]
    texts = [
        tuple(alone(make, prompt, max_tokens=20, temperature=1.0, seed=seed, choice=choice).token_ids)
        for seed, choice in drawn
    ]
    assert len(set(texts)) == len(drawn)


def test_what_can_never_fit_the_pool_is_refused_and_five_short_ones_finish(make: MakeHarness) -> None:
    harness = make(num_blocks=4)
    too_long = Generate(
        request_id="too-long",
        prompt_ids=prompt_of(65),
        sampling=SamplingParams(seed=1, max_tokens=4),
        tenant_id="alice",
    )
    refused = harness.scheduler.add(too_long)
    assert isinstance(refused, Refused)
    assert refused.code is Code.KV_POOL_EXCEEDED
    traces = [harness.add(prompt_of(5, salt), max_tokens=8) for salt in range(5)]
    harness.run()
    assert [trace.finish for trace in traces] == [FinishReason.LENGTH] * 5
    assert harness.scheduler.stats().blocks_referenced == 0
