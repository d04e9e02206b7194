"""Each filter keeps what it says, and the draw follows the distribution that is left."""

import pytest
import torch
from torch import Tensor

from inference_engine.execution.sampling.draws import Filters
from inference_engine.execution.sampling.filters import prefix_lengths, top_candidates
from sampling_rows import kept_probabilities, make_row, random_logits, sample

NUM_DRAWS = 10_000

pytestmark = pytest.mark.usefixtures("each_kind_of_draws")


def draws(logits: Tensor, **params: object) -> Tensor:
    """int64 [NUM_DRAWS] tokens of one row [V] at successive positions."""
    rows = [make_row(seed=20240229, position=position, **params) for position in range(NUM_DRAWS)]
    parts = logits.expand(NUM_DRAWS, -1).split(2000)
    batches = [rows[start : start + 2000] for start in range(0, NUM_DRAWS, 2000)]
    return torch.tensor(
        [t.token_id for part, some in zip(parts, batches, strict=True) for t in sample(part, some)]
    )


def chi_square_excess(tokens: Tensor, kept: dict[int, float], vocab_size: int) -> float:
    """Standard deviations that the statistic lies above its mean; rare tokens are put together."""
    counts = torch.bincount(tokens, minlength=vocab_size).double()
    wanted = torch.zeros(vocab_size, dtype=torch.float64)
    for id_, probability in kept.items():
        wanted[id_] = probability * NUM_DRAWS
    is_common = wanted >= 10
    observed = torch.cat([counts[is_common], counts[~is_common].sum().reshape(1)])
    expected = torch.cat([wanted[is_common], wanted[~is_common].sum().reshape(1)])
    observed, expected = observed[expected > 0], expected[expected > 0]
    freedom = len(expected) - 1
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return (statistic - freedom) / max(2 * freedom, 1) ** 0.5


SETTINGS = [
    {},
    {"temperature": 0.6},
    {"temperature": 2.0},
    {"top_k": 7},
    {"top_p": 0.8},
    {"min_p": 0.1},
    {"temperature": 1.5, "top_k": 50, "top_p": 0.9, "min_p": 0.02},
    {"temperature": 2.0, "top_p": 0.97},
]


@pytest.mark.parametrize("params", SETTINGS, ids=str)
def test_draws_follow_the_filtered_distribution(params: dict) -> None:
    logits = random_logits(1, 400, seed=11, spread=1.5)[0]
    tokens, kept = draws(logits, **params), kept_probabilities(logits, make_row(**params))
    assert set(tokens.tolist()) <= set(kept)
    assert abs(chi_square_excess(tokens, kept, 400)) < 4


def test_the_statistic_sees_a_wrong_temperature() -> None:
    logits = random_logits(1, 400, seed=11, spread=1.5)[0]
    kept = kept_probabilities(logits, make_row(temperature=1.2))
    assert chi_square_excess(draws(logits), kept, 400) > 8


@pytest.mark.parametrize("params", [{"top_p": 0.0}, {"top_k": 1}, {"min_p": 1.0}, {"top_p": 1e-9}], ids=str)
def test_exactly_one_token_is_left(params: dict) -> None:
    logits = random_logits(1, 400)[0]
    assert set(draws(logits, **params).tolist()) == {int(logits.argmax())}


@pytest.mark.parametrize("num_equal", [3, 300, 5000])
def test_among_equal_logits_the_lower_ids_are_kept(num_equal: int) -> None:
    logits = torch.full((6000,), -5.0)
    logits[torch.arange(num_equal) + 500] = 4.0
    rows = [make_row(position=position, top_k=2) for position in range(40)]
    assert {t.token_id for t in sample(logits.expand(40, -1), rows)} == {500, 501}
    rows = [make_row(position=position, top_p=0.0) for position in range(40)]
    assert {t.token_id for t in sample(logits.expand(40, -1), rows)} == {500}


def test_equal_logits_at_the_edge_of_the_candidates() -> None:
    """250 high ones, then thousands of equals: top-k 300 keeps the 50 lowest ids of those."""
    logits = torch.zeros(6000)
    logits[5000:5250] = 1.0
    rows = [make_row(position=position, top_k=300, temperature=2.0) for position in range(600)]
    tokens = {token.token_id for token in sample(logits.expand(600, -1), rows)}
    assert tokens <= {*range(50), *range(5000, 5250)}
    assert len(tokens & set(range(50))) > 20


@pytest.mark.parametrize("vocab_size", [10, 256, 257, 4095, 4096, 4111, 50257])
def test_candidates_are_the_highest(vocab_size: int) -> None:
    logits = random_logits(9, vocab_size, seed=vocab_size)
    count = min(256, vocab_size)
    wanted = logits.topk(count).indices.sort(1).values
    assert torch.equal(top_candidates(logits), wanted)


def test_prefix_lengths_by_hand() -> None:
    ranked = torch.tensor([[0.5, 0.25, 0.125, 0.125]], dtype=torch.float64).expand(8, -1)
    top_k = torch.tensor([4, 2, 4, 4, 4, 4, 2, 3])
    top_p = torch.tensor([1.0, 1.0, 0.5, 0.51, 0.0, 1.0, 0.6, 0.9], dtype=torch.float64)
    min_p = torch.tensor([0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0], dtype=torch.float64)
    # The seventh: of the 0.75 that top-k leaves, the first token holds two thirds.
    assert prefix_lengths(ranked, Filters(top_k, top_p, min_p)).tolist() == [4, 2, 1, 2, 1, 2, 1, 3]
