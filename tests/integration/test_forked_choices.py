"""n > 1 on a real model: a choice that forks its prompt computes the very logits that it would on its own."""

from pathlib import Path

import pytest
import torch

from engine_harness import EngineHarness, RecordingRunner
from tiny_models import save_tiny_llama

PROMPT = [(37 * i * i + 5) % 200 for i in range(45)]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> RecordingRunner:
    folder: Path = save_tiny_llama(tmp_path_factory.mktemp("llama"))
    return RecordingRunner.load(
        folder, backend="reference", dtype="float32", num_blocks=64, max_running=16, max_step_tokens=256
    )


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("length", [45, 32])
def test_forked_choices_read_as_if_alone(loaded: RecordingRunner, lag: int, length: int) -> None:
    together = EngineHarness.on_fresh_pool(loaded, lag=lag)
    choices = [
        together.add(
            PROMPT[:length],
            choice=choice,
            group_id="g",
            seed=7,
            temperature=1.0,
            max_tokens=20,
            ignore_eos=True,
        )
        for choice in range(3)
    ]
    together.run()
    assert [trace.request.cached_tokens for trace in choices] == [0, length - 1, length - 1]
    for choice, trace in enumerate(choices):
        alone = EngineHarness.on_fresh_pool(loaded, lag=lag)
        expected = alone.add(
            PROMPT[:length], choice=choice, seed=7, temperature=1.0, max_tokens=20, ignore_eos=True
        )
        alone.run()
        assert trace.token_ids == expected.token_ids
        assert torch.equal(trace.logits, expected.logits)
    assert len({tuple(trace.token_ids) for trace in choices}) == 3
