"""Natural logarithms of the model's own distribution: before temperature, filters and forbidden ids."""

import torch
from torch import Tensor

from inference_engine.contract.limits import MAX_TOP_LOGPROBS

Logprobs = tuple[float, list[tuple[int, float]]]
"""Of the chosen token, and of the most likely ones: the higher first, the lower id among equals."""


def row_logprobs(logits: Tensor, chosen: Tensor, num_top: list[int]) -> list[Logprobs]:
    """Logprobs for each row of finite logits, float32 [R, V]; chosen int64 [R]; num_top entries wanted a row.

    Differences are taken in float64, so every number is finite however far apart the logits are.
    """
    normaliser = _log_sum_exp(logits)
    chosen_logprobs = (logits.gather(1, chosen.unsqueeze(1)).squeeze(1).double() - normaliser).tolist()
    # A fixed count: which of several equal tokens topk returns may depend on how many it is asked for.
    values, ids = logits.topk(min(MAX_TOP_LOGPROBS, logits.shape[1]))
    tops = zip(ids.tolist(), (values.double() - normaliser.unsqueeze(1)).tolist(), strict=True)
    ranked = [sorted(zip(*top, strict=True), key=lambda entry: (-entry[1], entry[0])) for top in tops]
    return [
        (logprob, top[:count]) for logprob, top, count in zip(chosen_logprobs, ranked, num_top, strict=True)
    ]


def _log_sum_exp(logits: Tensor) -> Tensor:
    """float64 [R], from the softmax of each row: its highest entry is exp(highest logit - normaliser)."""
    return logits.amax(1).double() - torch.softmax(logits, 1).amax(1).double().log()
