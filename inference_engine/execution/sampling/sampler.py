"""From the logits of a step to its tokens: batched, yet each row's token is a function of that row alone."""

from collections.abc import Sequence

import torch
from torch import Tensor

from inference_engine.contract.codes import Code
from inference_engine.execution.sampling.draws import Draws, Filters
from inference_engine.execution.sampling.grammar_masks import GrammarMasks, MaskedRows
from inference_engine.execution.sampling.logprobs import row_logprobs
from inference_engine.execution.sampling.native_draws import NativeDraws, has_native_draws
from inference_engine.execution.sampling.penalties import LogitEdits
from inference_engine.execution.sampling.philox import uniforms
from inference_engine.execution.sampling.row import SamplingRow
from inference_engine.execution.sampling.torch_draws import TorchDraws
from inference_engine.scheduling.step_plan import PENDING_TOKEN, SampledToken

MIN_TEMPERATURE = 1e-5
"""Smaller temperatures above 0 act as this one."""
LARGEST = torch.finfo(torch.float32).max


class Sampler:
    """`draws`: where the arithmetic is done; by default our own kernel, torch where that isn't to be had."""

    def __init__(self, draws: Draws | None = None) -> None:
        self._draws = draws or (NativeDraws() if has_native_draws() else TorchDraws())

    def sample(
        self, logits: Tensor, rows: Sequence[SamplingRow], masks: GrammarMasks | None = None
    ) -> list[SampledToken]:
        """One token for each row of logits, float32 [rows, vocabulary]; logits are left as they are.

        A row whose logits are not all finite fails with NON_FINITE_LOGITS, one whose constraint failed with
        that one's code; the others are unharmed.
        """
        if not rows:
            return []
        temperatures = _temperatures(rows)
        finite = self._finite_rows(logits, temperatures)
        edits = LogitEdits(logits, rows)
        masked = MaskedRows(logits, masks)
        try:
            tokens = self._choose(logits, temperatures, finite, rows)
        finally:
            masked.undo()
            edits.undo()
        sampled = _sampled(logits, tokens, finite, rows)
        for index, code in masked.failures.items():
            sampled[index] = SampledToken(PENDING_TOKEN, failure=code)
        return sampled

    def _finite_rows(self, logits: Tensor, temperatures: Sequence[float]) -> list[bool]:
        """[R]: every logit is finite and the highest stays so as float32, divided by the temperature."""
        highest = self._draws.highest_if_finite(logits).tolist()
        return [
            abs(value / (temperature or 1.0)) <= LARGEST
            for value, temperature in zip(highest, temperatures, strict=True)
        ]

    def _choose(
        self,
        logits: Tensor,
        temperatures: Sequence[float],
        finite: Sequence[bool],
        rows: Sequence[SamplingRow],
    ) -> Tensor:
        """int64 [R] from edited logits."""
        tokens = self._draws.first_highest(logits)
        random = [index for index in range(len(rows)) if temperatures[index] and finite[index]]
        if random:
            index, chosen = torch.tensor(random), [rows[index] for index in random]
            filters, uniform = _filters(chosen, logits.shape[1]), _noise(chosen)
            divisors = torch.tensor([temperatures[each] for each in random], dtype=torch.float32)
            tokens[index] = self._draws.draw(logits, index, tokens, divisors, filters, uniform)
        return tokens


def _temperatures(rows: Sequence[SamplingRow]) -> list[float]:
    """[R]; 0 where greedy. No tensor: a few numbers cost an operator of torch, or of NumPy, ten times as much
    as plain Python, once the weights have been through the cache."""
    wanted = [row.params.temperature for row in rows]
    return [max(t, MIN_TEMPERATURE) if t > 0 else 0.0 for t in wanted]


def _filters(rows: Sequence[SamplingRow], vocab_size: int) -> Filters:
    return Filters(
        top_k=torch.tensor([min(row.params.top_k or vocab_size, vocab_size) for row in rows]),
        top_p=torch.tensor([row.params.top_p for row in rows], dtype=torch.float64),
        min_p=torch.tensor([row.params.min_p for row in rows], dtype=torch.float64),
    )


def _noise(rows: Sequence[SamplingRow]) -> Tensor:
    """float64 [n]"""
    seeds = [row.params.seed for row in rows]
    return torch.from_numpy(uniforms(seeds, [row.choice for row in rows], [row.position for row in rows]))


def _sampled(
    logits: Tensor, tokens: Tensor, finite: Sequence[bool], rows: Sequence[SamplingRow]
) -> list[SampledToken]:
    """Put the tokens, and the logprobs of rows that ask for them, into records."""
    sampled = [
        SampledToken(token) if is_finite else SampledToken(PENDING_TOKEN, failure=Code.NON_FINITE_LOGITS)
        for token, is_finite in zip(tokens.tolist(), finite, strict=True)
    ]
    asked = [
        (index, row.params.logprobs)
        for index, row in enumerate(rows)
        if row.params.logprobs is not None and sampled[index].failure is None
    ]
    if asked:
        index = torch.tensor([index for index, _ in asked])
        logprobs = row_logprobs(logits[index], tokens[index], [count for _, count in asked])
        for position, (logprob, top) in zip(index.tolist(), logprobs, strict=True):
            sampled[position].logprob, sampled[position].top = logprob, top
    return sampled
