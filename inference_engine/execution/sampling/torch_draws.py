"""Draws in plain torch, for machines without a compiler and as the oracle of the kernel's tests."""

import torch
from torch import Tensor

from inference_engine.execution.sampling.draws import Filters
from inference_engine.execution.sampling.filters import draw_filtered
from inference_engine.execution.sampling.vocabulary import draw, first_argmax, reduce_blocks


class TorchDraws:
    """Keeps two matrices of the largest batch seen, so that a step maps no fresh memory."""

    def __init__(self) -> None:
        self._scaled = self._probs = torch.empty(0)

    def highest_if_finite(self, logits: Tensor) -> Tensor:
        highest = reduce_blocks(logits, torch.amax).amax(1)
        lowest = reduce_blocks(logits, torch.amin).amin(1)
        return torch.where(torch.isfinite(lowest), highest, torch.nan)

    def first_highest(self, logits: Tensor) -> Tensor:
        return first_argmax(logits)

    def draw(
        self,
        logits: Tensor,
        index: Tensor,
        firsts: Tensor,
        temperatures: Tensor,
        filters: Filters,
        uniform: Tensor,
    ) -> Tensor:
        scaled, probs = self._softmax(logits, index, temperatures)
        tokens = torch.empty(len(index), dtype=torch.int64)
        is_ranked = (filters.top_k < logits.shape[1]) | (filters.top_p < 1.0)
        ranked, plain = is_ranked.nonzero().flatten(), (~is_ranked).nonzero().flatten()
        if len(ranked):
            tokens[ranked] = draw_filtered(scaled[ranked], probs[ranked], filters.of(ranked), uniform[ranked])
        if len(plain):
            weights = _drop_unlikely(probs[plain], filters.min_p[plain])
            tokens[plain] = draw(weights, uniform[plain])
        return tokens

    def _softmax(self, logits: Tensor, index: Tensor, temperatures: Tensor) -> tuple[Tensor, Tensor]:
        """Logits over temperature and their softmax, both [n, V], of the rows in index [n]."""
        shape = (len(index), logits.shape[1])
        if self._scaled.shape[0] < shape[0] or self._scaled.shape[1:] != shape[1:]:
            self._scaled, self._probs = torch.empty(shape), torch.empty(shape)
        scaled, probs = self._scaled[: len(index)], self._probs[: len(index)]
        torch.index_select(logits, 0, index, out=scaled).div_(temperatures.unsqueeze(1))
        return scaled, torch.softmax(scaled, 1, out=probs)


def _drop_unlikely(probs: Tensor, min_p: Tensor) -> Tensor:
    """probs [n, V], in place 0 where under min_p of the row's highest."""
    for row in (min_p > 0).nonzero().flatten().tolist():
        one = probs[row]
        one.masked_fill_(one < min_p[row].float() * one.amax(), 0.0)
    return probs
