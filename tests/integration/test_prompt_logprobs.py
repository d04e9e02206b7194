"""Logprobs of prompt tokens: the same however the prompt was cut, cached, preempted or batched."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from engine_harness import EngineHarness, RecordingRunner
from inference_engine.contract.events import TokenLogprobs
from matrix_threads import matrix_threads
from tiny_models import VOCABULARY, save_tiny_llama


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Waiting for other threads would be most of the time on a busy machine."""
    with matrix_threads(1):
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_llama(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def loaded(folder: Path) -> RecordingRunner:
    loaded = RecordingRunner.load(
        folder, backend="reference", dtype="float32", num_blocks=64, max_running=16, max_step_tokens=256
    )
    loaded.warm()
    return loaded


PROMPT = [(37 * i * i + 5) % VOCABULARY for i in range(90)]


def scores(engine: EngineHarness, prompt: list[int] = PROMPT, **fields: Any) -> list[TokenLogprobs]:
    trace = engine.add(prompt, prompt_logprobs=3, **{"max_tokens": 20, **fields})
    engine.run()
    assert trace.prompt_logprobs is not None
    return trace.prompt_logprobs


def test_they_are_those_of_transformers(loaded: RecordingRunner, folder: Path) -> None:
    found = scores(EngineHarness.on_fresh_pool(loaded))
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.inference_mode():
        expected = torch.log_softmax(model(torch.tensor([PROMPT])).logits[0].double(), -1)
    assert len(found) == len(PROMPT) - 1
    for row, target, one in zip(expected, PROMPT[1:], found, strict=False):
        assert one.logprob == pytest.approx(row[target].item(), abs=2e-3)
        assert [value for _, value in one.top] == pytest.approx(row.topk(3).values.tolist(), abs=2e-3)


@pytest.mark.parametrize("lag", [0, 1])
def test_chunks_neighbours_and_preemption_change_nothing(loaded: RecordingRunner, lag: int) -> None:
    expected = scores(EngineHarness.on_fresh_pool(loaded))
    cut = EngineHarness.on_fresh_pool(loaded, max_step_tokens=17, lag=lag)
    assert scores(cut) == expected
    beside = EngineHarness.on_fresh_pool(loaded, lag=lag)
    for salt in range(3):
        beside.add(PROMPT[salt : salt + 30], max_tokens=10)
        beside.step()
    assert scores(beside) == expected
    tight = EngineHarness.on_fresh_pool(loaded, num_blocks=12, lag=lag, max_step_tokens=32)
    others = [tight.add([7 + salt, *PROMPT[:40]], max_tokens=60) for salt in range(2)]
    assert scores(tight, max_tokens=60) == expected
    assert sum(trace.request.num_preemptions for trace in [*others, *tight.traces.values()]) > 0


def test_the_prefix_cache_is_left_aside_and_filled(loaded: RecordingRunner) -> None:
    engine = EngineHarness.on_fresh_pool(loaded)
    first = engine.add(PROMPT, max_tokens=2)
    engine.run()
    expected = scores(EngineHarness.on_fresh_pool(loaded))
    assert scores(engine) == expected
    again = list(engine.traces.values())[-1]
    assert (first.request.cached_tokens, again.request.cached_tokens) == (0, 0)
    plain = engine.add(PROMPT, max_tokens=2)
    engine.run()
    assert plain.request.cached_tokens >= 80


def test_a_prompt_of_one_token_has_none_and_others_are_not_asked(loaded: RecordingRunner) -> None:
    engine = EngineHarness.on_fresh_pool(loaded)
    plain = engine.add(PROMPT[:5], max_tokens=2)
    assert scores(engine, PROMPT[:1]) == []
    assert plain.prompt_logprobs is None


def test_an_end_id_at_once_still_hands_them_out(loaded: RecordingRunner) -> None:
    plain = EngineHarness.on_fresh_pool(loaded)
    trace = plain.add(PROMPT, max_tokens=1)
    plain.run()
    ending = EngineHarness.on_fresh_pool(loaded, end_ids=frozenset(trace.token_ids))
    assert len(scores(ending)) == len(PROMPT) - 1
