"""Rows for sampler tests, and what one row's token must be by the definition alone."""

import math
from typing import Any

import torch
from torch import Tensor

from inference_engine.contract.sampling import SamplingParams
from inference_engine.execution.sampling.philox import uniforms
from inference_engine.execution.sampling.row import SamplingRow
from inference_engine.execution.sampling.sampler import Sampler
from inference_engine.scheduling.step_plan import SampledToken


def make_row(
    *,
    seed: int = 0,
    choice: int = 0,
    position: int = 0,
    forbid_ids: frozenset[int] = frozenset(),
    **params: Any,
) -> SamplingRow:
    return SamplingRow(SamplingParams(seed=seed, max_tokens=1, **params), choice, position, forbid_ids)


def random_logits(rows: int, vocab_size: int, seed: int = 0, spread: float = 3.0) -> Tensor:
    return torch.randn(rows, vocab_size, generator=torch.Generator().manual_seed(seed)) * spread


def mixed_rows(count: int) -> list[SamplingRow]:
    """Greedy and random, every filter alone and with others, with and without logprobs and forbidden ids."""
    settings: list[dict[str, Any]] = [
        {"temperature": 0.0},
        {"temperature": 1.0},
        {"temperature": 0.7, "top_k": 40},
        {"temperature": 1.3, "top_p": 0.9},
        {"temperature": 2.0, "top_p": 0.99},
        {"temperature": 1.0, "top_k": 700, "top_p": 0.8},
        {"min_p": 0.05},
        {"temperature": 0.01, "top_p": 0.3, "logprobs": 5},
        {"temperature": 0.0, "logprobs": 0},
        {"top_k": 20, "top_p": 0.95, "min_p": 0.01, "logprobs": 20},
        {"temperature": 0.5, "forbid_ids": frozenset({3, 5, 10**9})},
    ]
    return [
        make_row(
            seed=index * 7919 - 5, choice=index % 3, position=index * 11, **settings[index % len(settings)]
        )
        for index in range(count)
    ]


def sample(logits: Tensor, rows: list[SamplingRow]) -> list[SampledToken]:
    return Sampler().sample(logits, rows)


def kept_probabilities(logits: Tensor, row: SamplingRow) -> dict[int, float]:
    """Id -> probability of the filtered distribution, in id order, by plain float64 arithmetic."""
    params = row.params
    allowed = {id_: value for id_, value in enumerate(logits.tolist()) if id_ not in row.forbid_ids}
    ranked = sorted(allowed, key=lambda id_: (-allowed[id_], id_))
    if params.temperature == 0:
        return {ranked[0]: 1.0}
    highest = allowed[ranked[0]]
    weight = {id_: math.exp((allowed[id_] - highest) / params.temperature) for id_ in ranked}
    ranked = ranked[: params.top_k or len(ranked)]
    mass, reached = math.fsum(weight[id_] for id_ in ranked), 0.0
    kept: list[int] = []
    for id_ in ranked:
        if kept and params.top_p < 1 and reached >= params.top_p * mass:
            break
        kept.append(id_)
        reached += weight[id_]
    kept = [id_ for id_ in kept if weight[id_] >= params.min_p]
    total = math.fsum(weight[id_] for id_ in kept)
    return {id_: weight[id_] / total for id_ in sorted(kept)}


def possible_tokens(kept: dict[int, float], row: SamplingRow, slack: float = 2e-5) -> set[int]:
    """The token at the row's own uniform; its neighbours as well where rounding may decide."""
    [uniform] = uniforms([row.params.seed], [row.choice], [row.position])
    found, reached = set(), 0.0
    for id_, probability in kept.items():
        if reached - slack <= uniform < reached + probability + slack:
            found.add(id_)
        reached += probability
    return found
