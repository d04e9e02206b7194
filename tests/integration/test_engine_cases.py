"""Cases 8, 19 and 22 of the list of public faults, on the engine's level: scheduler and model, no server."""

from dataclasses import dataclass

import pytest
from tokenizers import Tokenizer

from engine_harness import EngineHarness, RecordingRunner, Trace
from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.events import Refused
from inference_engine.contract.requests import Generate
from inference_engine.contract.sampling import SamplingParams
from tiny_models import save_tiny_llama

STORY = """The lighthouse keeper had counted ships for forty years before one of them counted him. It was
a grey morning in March, and the fog lay so thick upon the water that the bell had been ringing since
midnight. He wrote the date in his book, then the wind, then the height of the tide, as his father had
done and his father's father. When he looked up there was a boat below the rocks, painted the colour of
old bread, and a woman stood in it with a lantern although it was day. She called out a number, and he
understood after a while that it was the number of steps from the door to the lamp. Nobody else in the
world could have known it. He took his coat, forgot his hat, and went down all of those steps to ask her
how she came by it, what the weather was doing in the south, and if there was any news of the war. The dog
followed him as far as the gate and would not go any farther."""


@dataclass
class Bench:
    """Harnesses over one bf16 model, and prompts that make it say something."""

    loaded: RecordingRunner
    ids: list[int]

    def harness(self, num_blocks: int = 64) -> EngineHarness:
        """With a KV pool of its own."""
        loaded = self.loaded
        runner = RecordingRunner(loaded.model, loaded.backend, loaded.limits, num_blocks=num_blocks)
        return EngineHarness(runner)

    def prompt(self, length: int, salt: int = 0) -> list[int]:
        """length ids from a place in the story that salt picks."""
        return self.ids[11 * salt :][:length]

    def alone(self, prompt: list[int], **sampling: object) -> Trace:
        harness = self.harness()
        trace = harness.add(prompt, **sampling)
        harness.run()
        return trace


@pytest.fixture(scope="module", params=["tiny", "smollm2"])
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    if request.param == "tiny":
        folder, backend = save_tiny_llama(tmp_path_factory.mktemp("llama")), "reference"
        ids = [(37 * i * i + 5) % 200 for i in range(200)]
    else:
        request.getfixturevalue("compiler")
        folder, backend = request.getfixturevalue("smollm2_dir"), "cpu"
        ids = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(STORY).ids
    loaded = RecordingRunner.load(
        folder, backend=backend, dtype="bfloat16", num_blocks=64, max_running=16, max_step_tokens=256
    )
    assert loaded.warm().is_invariant
    return Bench(loaded, ids)


SETTINGS = [
    {"temperature": 0.0},
    {"temperature": 0.8, "seed": 42},
    {"temperature": 1.0, "top_p": 0.9, "seed": -7},
]


@pytest.mark.parametrize("sampling", SETTINGS, ids=["greedy", "seeded", "top_p"])
def test_two_requests_that_preempt_each_other_read_as_if_alone(
    bench: Bench, sampling: dict[str, float]
) -> None:
    prompts = [bench.prompt(50, salt) for salt in (1, 2)]
    expected = [bench.alone(prompt, max_tokens=60, **sampling).token_ids for prompt in prompts]
    harness = bench.harness(num_blocks=10)
    traces = [harness.add(prompt, max_tokens=60, **sampling) for prompt in prompts]
    harness.run()
    assert sum(trace.request.num_preemptions for trace in traces) > 0
    assert [trace.token_ids for trace in traces] == expected
    assert all(len(set(tokens)) >= 10 for tokens in expected)


@pytest.mark.parametrize("num_neighbours", [1, 3, 7])
def test_seeded_text_is_the_same_beside_neighbours(bench: Bench, num_neighbours: int) -> None:
    prompt = bench.prompt(20)
    expected = bench.alone(prompt, max_tokens=40, temperature=0.8, seed=42).token_ids
    harness = bench.harness()
    for index in range(num_neighbours):
        harness.add(bench.prompt(9 + index, index + 1), max_tokens=50, temperature=1.0, seed=1000 + index)
        harness.step()
    trace = harness.add(prompt, max_tokens=40, temperature=0.8, seed=42)
    harness.run()
    assert trace.token_ids == expected
    assert len(set(expected)) >= 10


def test_another_seed_and_another_choice_read_otherwise(bench: Bench) -> None:
    prompt = bench.prompt(20)
    drawn = [(42, 0), (43, 0), (42, 1), (42, 2)]
    texts = [
        tuple(bench.alone(prompt, max_tokens=20, temperature=1.0, seed=seed, choice=choice).token_ids)
        for seed, choice in drawn
    ]
    assert len(set(texts)) == len(drawn)


def test_what_can_never_fit_the_pool_is_refused_and_five_short_ones_finish(bench: Bench) -> None:
    harness = bench.harness(num_blocks=4)
    too_long = Generate(
        request_id="too-long",
        prompt_ids=bench.prompt(65),
        sampling=SamplingParams(seed=1, max_tokens=4),
        tenant_id="alice",
    )
    refused = harness.scheduler.add(too_long)
    assert isinstance(refused, Refused)
    assert refused.code is Code.KV_POOL_EXCEEDED
    traces = [harness.add(bench.prompt(5, salt), max_tokens=8) for salt in range(5)]
    harness.run()
    assert [trace.finish for trace in traces] == [FinishReason.LENGTH] * 5
    assert harness.scheduler.stats().blocks_referenced == 0
