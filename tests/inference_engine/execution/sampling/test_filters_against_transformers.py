"""The filters against the warpers of transformers, in both kinds of draws: which are left, how likely."""

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from inference_engine.execution.sampling.draws import Draws, Filters
from inference_engine.execution.sampling.native_draws import NativeDraws
from inference_engine.execution.sampling.torch_draws import TorchDraws

VOCAB_SIZE = 700
SETTINGS: list[dict[str, Any]] = [
    {"temperature": 0.6},
    {"temperature": 1.0, "top_k": 12},
    {"temperature": 1.7, "top_p": 0.9},
    {"temperature": 1.0, "top_p": 0.35},
    {"temperature": 1.2, "min_p": 0.08},
    {"temperature": 2.0, "top_k": 300, "top_p": 0.95, "min_p": 0.01},
]


def warped(logits: Tensor, params: dict[str, Any]) -> Tensor:
    """float64 [V], as transformers would have it, in the order in which it applies them."""
    warpers = LogitsProcessorList([TemperatureLogitsWarper(params["temperature"])])
    if "top_k" in params:
        warpers.append(TopKLogitsWarper(params["top_k"]))
    if "top_p" in params:
        warpers.append(TopPLogitsWarper(params["top_p"]))
    if "min_p" in params:
        warpers.append(MinPLogitsWarper(params["min_p"]))
    return torch.softmax(warpers(torch.zeros(1, 1, dtype=torch.int64), logits.double().unsqueeze(0))[0], 0)


def drawn(draws: Draws, logits: Tensor, params: dict[str, Any], uniform: Tensor) -> list[int]:
    count, rows = len(uniform), logits.unsqueeze(0)
    filters = Filters(
        torch.full((count,), params.get("top_k", VOCAB_SIZE)),
        torch.full((count,), params.get("top_p", 1.0), dtype=torch.float64),
        torch.full((count,), params.get("min_p", 0.0), dtype=torch.float64),
    )
    temperatures = torch.full((count,), params["temperature"], dtype=torch.float32)
    index = torch.zeros(count, dtype=torch.int64)
    return draws.draw(rows, index, draws.first_highest(rows), temperatures, filters, uniform).tolist()


@pytest.mark.parametrize("params", SETTINGS, ids=str)
@pytest.mark.parametrize("spread", [0.5, 3.0])
@pytest.mark.parametrize("kind", [NativeDraws, TorchDraws])
def test_every_id_that_is_left_has_its_own_share(
    kind: type, spread: float, params: dict[str, Any], compiler: str
) -> None:
    logits = torch.randn(VOCAB_SIZE, generator=torch.Generator().manual_seed(5)) * spread
    probabilities = warped(logits, params)
    kept = (probabilities > 2e-4).nonzero().flatten()
    cumulative = probabilities.cumsum(0)[kept]
    shares = probabilities[kept]
    draws: Draws = kind()
    for place in (0.05, 0.5, 0.95):
        assert drawn(draws, logits, params, cumulative - shares * (1 - place)) == kept.tolist()
