from pathlib import Path

import pytest
import torch

from engine_harness import EngineHarness, RecordingRunner
from inference_engine.contract.codes import Code
from inference_engine.contract.requests import Generate
from inference_engine.contract.sampling import SamplingParams
from inference_engine.execution.attention.reference import ReferenceBackend
from inference_engine.execution.model_runner import ModelRunner
from inference_engine.scheduling.request import Request
from inference_engine.scheduling.step_plan import ScheduledChunk, StepPlan
from tiny_models import VOCABULARY, save_tiny_llama

LIMITS = {"max_running": 4, "max_step_tokens": 64}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_llama(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def runner(folder: Path) -> RecordingRunner:
    runner = RecordingRunner.load(folder, backend="reference", dtype="float32", num_blocks=16, **LIMITS)
    runner.warm()
    return runner


def chunk(prompt: list[int], start: int, blocks: list[int], *, samples: bool) -> ScheduledChunk:
    generate = Generate(
        request_id=f"r{blocks}",
        prompt_ids=prompt,
        sampling=SamplingParams(seed=0, max_tokens=4, temperature=0.0),
        tenant_id="t",
    )
    request = Request(generate, arrival=1, max_tokens=4, end_ids=frozenset())
    return ScheduledChunk(request, start, prompt[start:], blocks, samples)


PROMPT = [(13 * i + 5) % VOCABULARY for i in range(20)]


def test_results_are_aligned_with_the_chunks(runner: RecordingRunner) -> None:
    plan = StepPlan(
        1,
        [
            chunk(PROMPT, 0, [0, 1], samples=False),
            chunk(PROMPT[:5], 0, [2], samples=True),
            chunk(PROMPT[:7], 0, [3], samples=True),
        ],
    )
    result = runner.run(plan)
    logits = runner.run_logits(plan)
    assert result.sampled[0] is None
    assert [token.token_id for token in result.sampled if token] == logits.argmax(-1).tolist()
    assert logits.shape == (2, VOCABULARY)
    assert logits.dtype is torch.float32


def test_a_step_that_samples_nothing_runs_no_head(runner: RecordingRunner) -> None:
    plan = StepPlan(1, [chunk(PROMPT, 0, [0, 1], samples=False)])
    assert runner.run(plan).sampled == [None]
    assert runner.run_logits(plan).shape == (0, VOCABULARY)


def test_blocks_are_copied_before_the_step(runner: RecordingRunner) -> None:
    """A fork: the copy continues as its original would have."""
    runner.run(StepPlan(1, [chunk(PROMPT[:19], 0, [4, 5], samples=False)]))
    original = runner.run_logits(StepPlan(2, [chunk(PROMPT, 19, [4, 5], samples=True)]))
    fork = runner.run_logits(StepPlan(3, [chunk(PROMPT, 19, [4, 9], samples=True)], copies=[(5, 9)]))
    assert torch.equal(fork, original)
    other = runner.run_logits(StepPlan(4, [chunk(PROMPT, 19, [4, 10], samples=True)]))
    assert not torch.equal(other, original)


def test_a_row_of_non_finite_logits_fails_alone(folder: Path) -> None:
    runner = RecordingRunner.load(folder, backend="reference", dtype="float32", num_blocks=16, **LIMITS)
    poisoned, spared = chunk(PROMPT, 16, [1, 2], samples=True), chunk(PROMPT[:3], 0, [3], samples=True)
    for layer in runner.pool.layers:
        layer.values[1] = torch.nan
    failed, fine = runner.run(StepPlan(1, [poisoned, spared])).sampled
    assert failed is not None
    assert fine is not None
    assert failed.failure is Code.NON_FINITE_LOGITS
    assert fine.failure is None


def test_description_says_what_serves(runner: RecordingRunner, folder: Path) -> None:
    fields = runner.description_fields()
    assert fields["dtype"] == "float32"
    assert fields["backend"] == "reference"
    assert fields["batch_invariant"] is True
    assert fields["max_running"] == 4
    assert fields["max_request_tokens"] == 16 * 16
    again = ModelRunner.load(folder, backend="reference", dtype="float32", num_blocks=8, **LIMITS)
    again.warm()
    assert again.fingerprint() == runner.fingerprint()
    other = ModelRunner.load(folder, backend="reference", dtype="bfloat16", num_blocks=16, **LIMITS)
    assert other.fingerprint() != runner.fingerprint()


def test_invariance_is_not_claimed_before_it_is_probed(runner: RecordingRunner) -> None:
    fresh = ModelRunner(runner.model, runner.backend, runner.limits, num_blocks=4)
    assert not fresh.batch_invariant
    assert fresh.warm().is_invariant
    assert fresh.batch_invariant


def test_a_backend_that_varies_is_reported(runner: RecordingRunner) -> None:
    class Varying(ReferenceBackend):
        batch_invariant = False

    fresh = ModelRunner(runner.model, Varying(), runner.limits, num_blocks=4)
    fresh.warm()
    assert not fresh.description_fields()["batch_invariant"]


def test_the_pool_is_sized_by_bytes_or_blocks(folder: Path) -> None:
    bytes_per_block = 3 * 2 * 16 * 2 * 16 * 4
    by_bytes = ModelRunner.load(
        folder, backend="reference", dtype="float32", kv_bytes=10 * bytes_per_block + 5, **LIMITS
    )
    assert by_bytes.num_blocks == 10
    by_default = ModelRunner.load(folder, backend="reference", dtype="float32", **LIMITS)
    assert by_default.num_blocks == 4 * 512 // 16


@pytest.mark.parametrize("setting", [{"dtype": "int3"}, {"backend": "abacus"}])
def test_unknown_settings_are_errors(setting: dict[str, str], folder: Path) -> None:
    with pytest.raises(ValueError, match=r"int3|abacus"):
        ModelRunner.load(folder, num_blocks=4, **{"backend": "reference", **setting}, **LIMITS)


def test_tokens_planned_a_step_ahead_are_the_ones_sampled(runner: RecordingRunner) -> None:
    texts = []
    for lag in (0, 1):
        harness = EngineHarness(runner, lag=lag)
        trace = harness.add(PROMPT[:9], max_tokens=12)
        harness.run()
        texts.append(trace.token_ids)
    assert texts[0] == texts[1]
    assert len(set(texts[0])) > 5
