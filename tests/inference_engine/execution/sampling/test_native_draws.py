"""The kernel against the definition where plain torch, and sorting, are no help: exact weights and ties."""

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from inference_engine.execution.sampling.draws import Filters
from inference_engine.execution.sampling.native_draws import NativeDraws
from inference_engine.execution.sampling.torch_draws import TorchDraws

LOG_2 = math.log(2)
"""Temperature that makes a weight of a logit -1 one half."""
LEVELS = st.lists(st.integers(-6, 0), min_size=1, max_size=700)


@pytest.fixture(scope="module", autouse=True)
def _kernel(compiler: str) -> None:
    """They are about the kernel."""


def draw(
    logits: Tensor, *, top_k: int | None = None, top_p: float = 1.0, min_p: float = 0.0, uniforms: list[float]
) -> list[int]:
    """The token of one row [V] at each uniform."""
    draws, count = NativeDraws(), len(uniforms)
    rows = logits.unsqueeze(0)
    filters = Filters(
        torch.full((count,), len(logits) if top_k is None else min(top_k, len(logits))),
        torch.full((count,), top_p, dtype=torch.float64),
        torch.full((count,), min_p, dtype=torch.float64),
    )
    temperatures = torch.full((count,), 1 / LOG_2, dtype=torch.float32)
    index = torch.zeros(count, dtype=torch.int64)
    uniform = torch.tensor(uniforms, dtype=torch.float64)
    return draws.draw(rows, index, draws.first_highest(rows), temperatures, filters, uniform).tolist()


def kept_by_definition(
    levels: list[int], top_k: int | None, top_p: Fraction | None, min_p: Fraction | None
) -> list[int]:
    """Ids that are left, by exact arithmetic with weights that are powers of two."""
    weights = [Fraction(2) ** level for level in levels]
    highest = max(weights)
    ranked = sorted(range(len(levels)), key=lambda id_: (-levels[id_], id_))[: top_k or len(levels)]
    if top_p is not None:
        total, reached, kept = sum(weights[id_] for id_ in ranked), Fraction(0), []
        for id_ in ranked:
            if kept and reached >= top_p * total:
                break
            kept.append(id_)
            reached += weights[id_]
        ranked = kept
    return sorted(id_ for id_ in ranked if min_p is None or weights[id_] >= min_p * highest)


@given(
    LEVELS,
    st.none() | st.integers(1, 900),
    st.none() | st.fractions(0, Fraction(999, 1000), max_denominator=1000),
    st.none() | st.sampled_from([Fraction(1, 3), Fraction(3, 4), Fraction(1, 50)]),
)
@settings(max_examples=150, deadline=None)
def test_what_is_left_is_exactly_what_the_rule_says(
    levels: list[int], top_k: int | None, top_p: Fraction | None, min_p: Fraction | None
) -> None:
    """Every id left is drawn at the middle of its own share, and no other at the ends. A share of top-p that
    falls on a boundary to the last bit is no test: a rounding decides it."""
    kept = kept_by_definition(levels, top_k, top_p, min_p)
    nearly = () if top_p is None else (top_p * Fraction(10**6 + step, 10**6) for step in (-1, 1))
    if any(kept_by_definition(levels, top_k, share, min_p) != kept for share in nearly):
        return
    weights = [Fraction(2) ** levels[id_] for id_ in kept]
    total, before, middles = sum(weights), Fraction(0), []
    for weight in weights:
        middles.append(float((before + weight / 2) / total))
        before += weight
    drawn = draw(
        torch.tensor(levels, dtype=torch.float32),
        top_k=top_k,
        top_p=1.0 if top_p is None else float(top_p),
        min_p=0.0 if min_p is None else float(min_p),
        uniforms=[*middles, 2.0**-53, 1 - 2.0**-52],
    )
    assert drawn == [*kept, kept[0], kept[-1]]


def test_zeros_of_both_signs_are_equals() -> None:
    logits = torch.tensor([-1.0, -0.0, 0.0, -0.0])
    assert draw(logits, top_k=2, uniforms=[0.2, 0.8]) == [1, 2]


def test_forbidden_ids_weigh_nothing() -> None:
    logits = torch.full((300,), -torch.inf)
    logits[[7, 290]] = torch.tensor([1.0, 2.0])
    assert set(draw(logits, uniforms=[0.01, 0.3, 0.5, 0.99])) == {7, 290}
    assert set(draw(logits, top_p=0.999, top_k=5, uniforms=[0.01, 0.3, 0.5, 0.99])) == {7, 290}


@pytest.mark.parametrize("vocab_size", [1, 15, 16, 255, 257, 1000, 49_152])
def test_rows_are_the_same_at_every_place_and_size(vocab_size: int) -> None:
    draws, generator = NativeDraws(), torch.Generator().manual_seed(vocab_size)
    logits = torch.randn(9, vocab_size, generator=generator)
    firsts = draws.first_highest(logits)
    assert torch.equal(firsts, TorchDraws().first_highest(logits))
    assert torch.equal(draws.highest_if_finite(logits), logits.amax(1))
    temperatures = torch.rand(9, generator=generator) + 0.2
    filters = Filters(
        torch.tensor([vocab_size, 3, 500] * 3).clamp(max=vocab_size),
        torch.tensor([1.0, 0.9, 0.5, 0.99] * 2 + [0.0], dtype=torch.float64),
        torch.tensor([0.0, 0.0, 0.01] * 3, dtype=torch.float64),
    )
    uniform = torch.rand(9, generator=generator, dtype=torch.float64)
    index = torch.arange(9)
    whole = draws.draw(logits, index, firsts, temperatures, filters, uniform)
    for row in range(9):
        one = slice(row, row + 1)
        again = draws.draw(
            logits[one].clone(), index[:1], firsts[one], temperatures[one], filters.of(one), uniform[one]
        )
        assert torch.equal(again, whole[one])


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_a_row_that_is_not_finite_is_seen(bad: float) -> None:
    logits = torch.zeros(3, 1001)
    logits[1, 1000] = bad
    assert torch.isfinite(NativeDraws().highest_if_finite(logits)).tolist() == [True, False, True]


def test_a_row_of_nothing_but_nan_ends() -> None:
    assert NativeDraws().first_highest(torch.full((1, 40), torch.nan)).shape == (1,)
