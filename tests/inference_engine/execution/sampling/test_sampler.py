"""What the sampler promises of a row, whatever its neighbours are."""

import math

import pytest
import torch

from inference_engine.contract.codes import Code
from inference_engine.execution.sampling.row import SamplingRow
from inference_engine.execution.sampling.sampler import Sampler
from inference_engine.scheduling.step_plan import PENDING_TOKEN
from sampling_rows import (
    kept_probabilities,
    make_row,
    mixed_rows,
    possible_tokens,
    random_logits,
    sample,
)

pytestmark = pytest.mark.usefixtures("each_kind_of_draws")


def test_no_rows_sample_nothing() -> None:
    assert sample(torch.empty(0, 10), []) == []


def test_greedy_takes_the_lowest_id_among_the_highest() -> None:
    logits = torch.zeros(3, 1000)
    logits[0, [900, 17, 400]] = 2.0
    logits[2, 999] = 1e-30
    assert [token.token_id for token in sample(logits, [make_row(temperature=0.0)] * 3)] == [17, 0, 999]


@pytest.mark.parametrize("vocab_size", [1, 17, 300, 4099])
def test_every_token_is_the_one_its_own_uniform_selects(vocab_size: int) -> None:
    rows = mixed_rows(66)
    for spread in (0.5, 3.0, 10.0):
        logits = random_logits(len(rows), vocab_size, seed=vocab_size, spread=spread)
        rows_of_size = [make_row_for(row, vocab_size) for row in rows]
        for row, row_logits, token in zip(rows_of_size, logits, sample(logits, rows_of_size), strict=True):
            assert token.token_id in possible_tokens(kept_probabilities(row_logits, row), row), row


def make_row_for(row: SamplingRow, vocab_size: int) -> SamplingRow:
    """A vocabulary that would be forbidden whole keeps its first ids."""
    return row if vocab_size > 5 else SamplingRow(row.params, row.choice, row.position)


@pytest.mark.parametrize("vocab_size", [300, 4099, 49152, 50257])
def test_a_row_is_bitwise_the_same_alone_and_among_64(vocab_size: int) -> None:
    logits, rows = random_logits(64, vocab_size), mixed_rows(64)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        together = sample(logits, rows)
        assert len({token.token_id for token in together}) > 10
        for count in (1, 5, 33):
            parts = zip(logits.split(count), batches(rows, count), strict=True)
            assert [token for part, some in parts for token in sample(part.clone(), some)] == together
        torch.set_num_threads(3)
        assert sample(logits.flip(0), rows[::-1])[::-1] == together
        assert sample(logits[7:8].clone(), rows[7:8]) == together[7:8]
    finally:
        torch.set_num_threads(before)


def batches(rows: list[SamplingRow], count: int) -> list[list[SamplingRow]]:
    return [rows[start : start + count] for start in range(0, len(rows), count)]


def test_scratch_of_a_larger_batch_leaves_no_trace() -> None:
    sampler = Sampler()
    rows = mixed_rows(64)
    sampler.sample(random_logits(64, 5000, seed=1, spread=50.0), rows)
    logits = random_logits(6, 5000, seed=2)
    assert sampler.sample(logits, rows[:6]) == sample(logits, rows[:6])
    other = random_logits(6, 4999, seed=2)
    assert sampler.sample(other, rows[:6]) == sample(other, rows[:6])


def test_logits_are_left_as_they_are() -> None:
    logits = random_logits(22, 600)
    before = logits.clone()
    sample(logits, mixed_rows(22))
    assert torch.equal(logits, before)


def test_seed_choice_and_position_each_move_the_draw() -> None:
    logits = torch.zeros(4, 5000)
    rows = [make_row(), make_row(seed=1), make_row(choice=1), make_row(position=1)]
    tokens = [token.token_id for token in sample(logits, rows)]
    assert len(set(tokens)) == 4
    assert [token.token_id for token in sample(logits, rows)] == tokens


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("params", [{"temperature": 0.0}, {}, {"top_p": 0.9, "logprobs": 3}], ids=str)
def test_a_row_that_is_not_finite_fails_alone(bad: float, params: dict) -> None:
    rows = mixed_rows(12)
    logits = random_logits(12, 1000)
    wanted = sample(logits, rows)
    logits[4, 777] = bad
    rows[4] = make_row(**params)
    sampled = sample(logits, rows)
    assert sampled[4].failure is Code.NON_FINITE_LOGITS
    assert (sampled[4].token_id, sampled[4].logprob, sampled[4].top) == (PENDING_TOKEN, None, [])
    assert sampled[:4] + sampled[5:] == wanted[:4] + wanted[5:]
    assert all(token.failure is None for token in sampled[:4])


def test_logits_too_large_for_the_temperature_fail_rather_than_turn_into_nan() -> None:
    logits = torch.zeros(2, 50)
    logits[0, 3] = 3e38
    tokens = sample(logits, [make_row(temperature=1e-9), make_row(temperature=0.0)])
    assert tokens[0].failure is Code.NON_FINITE_LOGITS and tokens[1].failure is None


@pytest.mark.parametrize("temperature", [0.0, 1e-300, 1e-6, 0.7])
def test_forbidden_ids_are_never_sampled(temperature: float) -> None:
    logits = torch.zeros(200, 600)
    logits[:, [1, 2]] = 20.0
    rows = [
        make_row(temperature=temperature, position=index, forbid_ids=frozenset({1, 2, 600, 10**12}))
        for index in range(200)
    ]
    free = [make_row(temperature=temperature, position=index) for index in range(200)]
    assert {1, 2}.isdisjoint(token.token_id for token in sample(logits, rows))
    assert {token.token_id for token in sample(logits, free)} <= {1, 2}


def test_tiny_temperatures_are_nearly_greedy() -> None:
    logits = random_logits(50, 3000)
    for temperature in (1e-300, 1e-5, 1e-3):
        rows = [make_row(temperature=temperature, position=index) for index in range(50)]
        assert [token.token_id for token in sample(logits, rows)] == logits.argmax(1).tolist()
