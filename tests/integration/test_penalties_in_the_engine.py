"""Penalties, biases and bad words through scheduler and model: the same however a request is served.

Case 22 of the list of public faults for penalties, and n > 1 by forks (case 9).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine_harness import EngineHarness, RecordingRunner, Trace
from matrix_threads import matrix_threads
from tiny_models import VOCABULARY, save_tiny_llama

PENALISED: list[dict[str, Any]] = [
    {"temperature": 0.0, "frequency_penalty": 1.5, "presence_penalty": 0.5},
    {"temperature": 0.8, "seed": 42, "repetition_penalty": 1.4, "logit_bias": {3: 2.0, 9: -5.0}},
    {"temperature": 1.0, "top_p": 0.9, "seed": -7, "bad_words_ids": ((4,), (1, 2)), "presence_penalty": -0.7},
]
NAMES = ["greedy", "seeded", "bad-words"]


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Waiting for other threads would be most of the time on a busy machine."""
    with matrix_threads(1):
        yield


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> RecordingRunner:
    folder = save_tiny_llama(tmp_path_factory.mktemp("llama"))
    loaded = RecordingRunner.load(
        folder, backend="reference", dtype="float32", num_blocks=64, max_running=16, max_step_tokens=256
    )
    loaded.warm()
    return loaded


def prompt(length: int, salt: int = 0) -> list[int]:
    return [(37 * i * i + 5 + salt) % VOCABULARY for i in range(length)]


def alone(loaded: RecordingRunner, ids: list[int], **sampling: Any) -> Trace:
    engine = EngineHarness.on_fresh_pool(loaded)
    trace = engine.add(ids, **sampling)
    engine.run()
    return trace


@pytest.mark.parametrize("sampling", PENALISED, ids=NAMES)
@pytest.mark.parametrize("lag", [0, 1])
def test_penalties_survive_preemption(loaded: RecordingRunner, sampling: dict[str, Any], lag: int) -> None:
    prompts = [prompt(50, salt) for salt in (1, 2)]
    expected = [alone(loaded, ids, max_tokens=60, **sampling).token_ids for ids in prompts]
    engine = EngineHarness.on_fresh_pool(loaded, num_blocks=10, lag=lag)
    traces = [engine.add(ids, max_tokens=60, **sampling) for ids in prompts]
    engine.run()
    assert sum(trace.request.num_preemptions for trace in traces) > 0
    assert [trace.token_ids for trace in traces] == expected
    plain = {name: sampling[name] for name in ("temperature", "seed", "top_p") if name in sampling}
    assert alone(loaded, prompts[0], max_tokens=60, **plain).token_ids != expected[0]


@pytest.mark.parametrize("sampling", PENALISED, ids=NAMES)
def test_a_replay_goes_on_as_if_nothing_had_happened(
    loaded: RecordingRunner, sampling: dict[str, Any]
) -> None:
    expected = alone(loaded, prompt(20), max_tokens=40, **sampling).token_ids
    for num_replayed in (1, 17, 39):
        again = alone(
            loaded, prompt(20), max_tokens=40, output_ids=expected[:num_replayed], **sampling
        ).token_ids
        assert expected[:num_replayed] + again == expected


@pytest.mark.parametrize("sampling", PENALISED, ids=NAMES)
@pytest.mark.parametrize("lag", [0, 1])
def test_neighbours_change_nothing(loaded: RecordingRunner, sampling: dict[str, Any], lag: int) -> None:
    expected = alone(loaded, prompt(20), max_tokens=40, **sampling).token_ids
    engine = EngineHarness.on_fresh_pool(loaded, lag=lag)
    for index in range(7):
        engine.add(prompt(9 + index, index + 1), max_tokens=30, **PENALISED[index % 3] | {"seed": index})
        engine.step()
    trace = engine.add(prompt(20), max_tokens=40, **sampling)
    engine.run()
    assert trace.token_ids == expected
    assert len(set(expected)) >= 10


def test_greedy_tokens_are_those_that_plain_arithmetic_picks(loaded: RecordingRunner) -> None:
    """The recorded logits are the model's own; whatever is taken from them is counted anew here."""
    ids = prompt(20)
    settings = {"frequency_penalty": 1.2, "presence_penalty": 0.4, "repetition_penalty": 1.3}
    trace = alone(loaded, ids, max_tokens=80, logit_bias={7: 1.5}, bad_words_ids=((11,),), **settings)
    for position, (row, token_id) in enumerate(zip(trace.logits.numpy(), trace.token_ids, strict=True)):
        outputs = trace.token_ids[:position]
        wanted = row.astype(np.float64)
        for seen in {*ids, *outputs}:
            wanted[seen] = wanted[seen] / 1.3 if wanted[seen] > 0 else wanted[seen] * 1.3
        for seen in set(outputs):
            wanted[seen] -= 1.2 * outputs.count(seen) + 0.4
        wanted[7] += 1.5
        wanted[11] = -np.inf
        assert wanted[token_id] >= wanted.max() - 1e-4
    assert len(set(trace.token_ids)) > 20


def test_bad_words_never_appear(loaded: RecordingRunner) -> None:
    plain = alone(loaded, prompt(20), max_tokens=60, temperature=1.0, seed=5).token_ids
    words = ((plain[3],), (plain[10], plain[11]), (plain[20], plain[21], plain[22]))
    text = alone(loaded, prompt(20), max_tokens=60, temperature=1.0, seed=5, bad_words_ids=words).token_ids
    whole = prompt(20) + text
    for word in words:
        starts = range(max(0, 20 - len(word) + 1), len(whole) - len(word) + 1)
        assert not any(tuple(whole[start : start + len(word)]) == word for start in starts)
    assert text != plain


@pytest.mark.parametrize("lag", [0, 1])
def test_choices_of_one_group_differ_and_each_is_as_if_alone(loaded: RecordingRunner, lag: int) -> None:
    """Case 9: a seed with n 3 gives three texts, the same three each time, forked or not."""
    sampling: dict[str, Any] = {"temperature": 1.0, "seed": 42, "frequency_penalty": 0.5, "max_tokens": 30}
    expected = [alone(loaded, prompt(40), choice=choice, **sampling).token_ids for choice in range(3)]
    engine = EngineHarness.on_fresh_pool(loaded, lag=lag)
    traces = [engine.add(prompt(40), choice=choice, group_id="g", **sampling) for choice in range(3)]
    engine.run()
    assert [trace.token_ids for trace in traces] == expected
    assert len({tuple(tokens) for tokens in expected}) == 3
    assert traces[1].request.cached_tokens >= 39
