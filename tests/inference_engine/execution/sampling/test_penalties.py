"""Penalties, biases and forbidden ids against plain arithmetic, one row at a time."""

import random
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import RepetitionPenaltyLogitsProcessor

from inference_engine.contract.sampling import SamplingParams
from inference_engine.execution.sampling.adjustments import Adjustment
from inference_engine.execution.sampling.penalties import LogitEdits
from inference_engine.execution.sampling.row import SamplingRow
from inference_engine.execution.sampling.sampler import Sampler
from sampling_rows import random_logits

VOCAB = 300
SETTINGS: list[dict[str, Any]] = [
    {},
    {"presence_penalty": 2.0},
    {"presence_penalty": -1.5, "frequency_penalty": 0.3},
    {"frequency_penalty": -2.0, "logit_bias": {5: 100.0, 299: -100.0}},
    {"repetition_penalty": 1.3},
    {"repetition_penalty": 0.01, "presence_penalty": 0.1, "frequency_penalty": 0.1},
    {"repetition_penalty": 10_000.0, "logit_bias": {i: i / 10 for i in range(0, 200, 3)}},
    {"logit_bias": {0: 0.25}},
    {"frequency_penalty": 1.1, "temperature": 0.0, "logprobs": 3},
]


def penalised_row(
    params: dict[str, Any], prompt: list[int], outputs: list[int], forbid: frozenset[int] = frozenset()
) -> SamplingRow:
    sampling = SamplingParams(seed=3, max_tokens=99, **params)
    adjustment = Adjustment(sampling, prompt)
    for token_id in outputs:
        adjustment.history.add(token_id)
    return SamplingRow(sampling, 0, len(prompt) + len(outputs), forbid, adjustment)


def naive(
    logits: NDArray[np.float32],
    params: SamplingParams,
    prompt: list[int],
    outputs: list[int],
    forbid: frozenset[int],
) -> NDArray[np.float32]:
    wanted = logits.copy()
    for token_id in range(len(logits)):
        value = np.float32(logits[token_id])
        if token_id in prompt or token_id in outputs:
            repetition = np.float32(params.repetition_penalty)
            value = value / repetition if value > 0 else value * repetition
        count = outputs.count(token_id)
        if count:
            value -= np.float32(params.frequency_penalty * count + params.presence_penalty)
        value += np.float32(params.logit_bias.get(token_id, 0.0))
        wanted[token_id] = -np.inf if token_id in forbid else value
    return wanted


def cases() -> list[tuple[SamplingRow, list[int], list[int]]]:
    chance = random.Random(7)
    made = []
    for number in range(64):
        prompt = [chance.randrange(VOCAB) for _ in range(chance.randrange(1, 90))]
        outputs = [chance.randrange(40) for _ in range(chance.randrange(0, 200))]
        forbid = frozenset(chance.sample(range(VOCAB), number % 4))
        made.append(
            (penalised_row(SETTINGS[number % len(SETTINGS)], prompt, outputs, forbid), prompt, outputs)
        )
    return made


def test_every_row_is_what_plain_arithmetic_makes_of_it() -> None:
    made = cases()
    logits = random_logits(len(made), VOCAB, spread=8.0)
    before = logits.clone()
    edits = LogitEdits(logits, [row for row, _, _ in made])
    for edited, original, (row, prompt, outputs) in zip(logits, before, made, strict=True):
        expected = naive(original.numpy(), row.params, prompt, outputs, row.forbid_ids)
        np.testing.assert_array_equal(edited.numpy(), expected)
    edits.undo()
    assert torch.equal(logits, before)


def test_a_row_is_bitwise_the_same_alone_and_among_64() -> None:
    rows = [row for row, _, _ in cases()]
    logits = random_logits(len(rows), VOCAB, spread=8.0)
    together = Sampler().sample(logits, rows)
    alone = [Sampler().sample(logits[i : i + 1].clone(), [row])[0] for i, row in enumerate(rows)]
    assert together == alone
    plain = [SamplingRow(row.params, 0, row.position) for row in rows]
    assert [token.token_id for token in Sampler().sample(logits, plain)] != [t.token_id for t in together]


def test_logprobs_are_those_of_the_model_whatever_the_penalties() -> None:
    logits = torch.zeros(1, VOCAB)
    logits[0, 7] = 5.0
    row = penalised_row(
        {"frequency_penalty": 2.0, "temperature": 0.0, "logprobs": 1}, prompt=[1], outputs=[7] * 4
    )
    [token] = Sampler().sample(logits, [row])
    assert token.token_id == 0
    assert token.top[0][0] == 7
    assert token.logprob == pytest.approx(torch.log_softmax(logits[0].double(), 0)[0].item())


@pytest.mark.parametrize("penalty", [0.3, 1.7, 50.0])
def test_repetition_is_as_in_transformers(penalty: float) -> None:
    prompt, outputs = [3, 9, 9, 250], [9, 17, 3]
    logits = random_logits(1, VOCAB)
    expected = RepetitionPenaltyLogitsProcessor(penalty)(torch.tensor([prompt + outputs]), logits.clone())
    LogitEdits(logits, [penalised_row({"repetition_penalty": penalty}, prompt, outputs)])
    assert torch.equal(logits, expected)


def test_extreme_penalties_leave_every_logit_finite() -> None:
    logits = torch.tensor([[3e37, -3e37, 0.0, 1e-38]])
    row = penalised_row({"repetition_penalty": 1e-30}, [0, 1, 2, 3], [])
    LogitEdits(logits, [row])
    assert torch.isfinite(logits).all()
    other = torch.tensor([[1.0, -3e37, 0.0, 1e-38]])
    LogitEdits(other, [penalised_row({"repetition_penalty": 1e4, "temperature": 1e-9}, [0, 1, 2, 3], [])])
    assert torch.isfinite(other).all()


def test_a_forbidden_id_beats_any_bias() -> None:
    logits = torch.zeros(1, VOCAB)
    row = penalised_row(
        {"logit_bias": {5: 100.0}, "temperature": 0.0}, [1], [], forbid=frozenset({5, VOCAB + 3})
    )
    assert Sampler().sample(logits, [row])[0].token_id == 0


def test_a_bias_of_a_hundred_decides_and_one_of_minus_a_hundred_excludes() -> None:
    logits = random_logits(200, VOCAB, spread=3.0)
    wanted = penalised_row({"logit_bias": {41: 100.0}}, [1], [])
    assert {token.token_id for token in Sampler().sample(logits, [wanted] * 200)} == {41}
    [most_likely] = {int(logits[:1].argmax())}
    excluded = penalised_row({"logit_bias": {most_likely: -100.0}, "temperature": 0.0}, [1], [])
    assert Sampler().sample(logits[:1], [excluded])[0].token_id != most_likely
