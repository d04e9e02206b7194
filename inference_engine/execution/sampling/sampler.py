"""From the logits of a step to its tokens: batched, yet each row's token is a function of that row alone."""

from collections.abc import Sequence

import torch
from torch import Tensor

from inference_engine.contract.codes import Code
from inference_engine.execution.sampling.filters import Filters, draw_filtered
from inference_engine.execution.sampling.logprobs import row_logprobs
from inference_engine.execution.sampling.philox import uniforms
from inference_engine.execution.sampling.row import SamplingRow
from inference_engine.execution.sampling.vocabulary import draw, first_argmax, reduce_blocks
from inference_engine.scheduling.step_plan import PENDING_TOKEN, SampledToken

MIN_TEMPERATURE = 1e-5
"""Smaller temperatures above 0 act as this one."""


class Sampler:
    def sample(self, logits: Tensor, rows: Sequence[SamplingRow]) -> list[SampledToken]:
        """One token for each row of logits, float32 [rows, vocabulary]; logits are left as they are.

        A row whose logits are not all finite fails with NON_FINITE_LOGITS; the others are unharmed.
        """
        if not rows:
            return []
        temperatures = _temperatures(rows)
        finite = _finite_rows(logits, temperatures)
        allowed = _without_forbidden(logits, rows)
        tokens = first_argmax(allowed)
        random = (finite & (temperatures > 0)).nonzero().flatten()
        if len(random):
            tokens[random] = _draw(allowed, temperatures, random, rows)
        return _sampled(logits, tokens, finite, rows)


def _temperatures(rows: Sequence[SamplingRow]) -> Tensor:
    """float32 [R]; 0 where greedy."""
    wanted = [row.params.temperature for row in rows]
    return torch.tensor([max(t, MIN_TEMPERATURE) if t > 0 else 0.0 for t in wanted], dtype=torch.float32)


def _finite_rows(logits: Tensor, temperatures: Tensor) -> Tensor:
    """bool [R]: every logit is finite and the highest stays so when divided by the temperature."""
    highest = reduce_blocks(logits, torch.amax).amax(1)
    lowest = reduce_blocks(logits, torch.amin).amin(1)
    scaled = highest / torch.where(temperatures > 0, temperatures, 1.0)
    return torch.isfinite(scaled) & torch.isfinite(lowest)


def _without_forbidden(logits: Tensor, rows: Sequence[SamplingRow]) -> Tensor:
    """logits, or a copy with -inf at every forbidden id where some row forbids any."""
    size = logits.shape[1]
    forbidden = [(index, id_) for index, row in enumerate(rows) for id_ in row.forbid_ids if id_ < size]
    if not forbidden:
        return logits
    row_index, ids = torch.tensor(forbidden).unbind(1)
    return logits.index_put((row_index, ids), torch.tensor(-torch.inf))


def _draw(logits: Tensor, temperatures: Tensor, index: Tensor, rows: Sequence[SamplingRow]) -> Tensor:
    """int64 [n]: tokens of the rows in index [n], all finite and of positive temperature."""
    chosen = [rows[i] for i in index.tolist()]
    noise = uniforms(
        [row.params.seed for row in chosen], [row.choice for row in chosen], [row.position for row in chosen]
    )
    uniform = torch.from_numpy(noise)
    scaled = logits[index] if len(index) < len(rows) else logits
    scaled = scaled / temperatures[index].unsqueeze(1)
    probs = torch.softmax(scaled, 1)
    filters, is_ranked = _filters(chosen, logits.shape[1])
    ranked, plain = is_ranked.nonzero().flatten(), (~is_ranked).nonzero().flatten()
    tokens = torch.empty(len(chosen), dtype=torch.int64)
    if len(ranked):
        tokens[ranked] = draw_filtered(scaled, probs, ranked, filters.of(ranked), uniform[ranked])
    if len(plain):
        tokens[plain] = draw(_plain_weights(probs, plain, filters.min_p), uniform[plain])
    return tokens


def _filters(rows: Sequence[SamplingRow], vocab_size: int) -> tuple[Filters, Tensor]:
    """The rows' filters, and bool [n]: whether top-k or top-p asks for a ranking."""
    top_k = torch.tensor([min(row.params.top_k or vocab_size, vocab_size) for row in rows])
    top_p = torch.tensor([row.params.top_p for row in rows], dtype=torch.float64)
    min_p = torch.tensor([row.params.min_p for row in rows], dtype=torch.float64)
    return Filters(top_k, top_p, min_p), (top_k < vocab_size) | (top_p < 1.0)


def _plain_weights(probs: Tensor, index: Tensor, min_p: Tensor) -> Tensor:
    """Probabilities of the rows in index, 0 where under min_p of the row's highest."""
    weights = probs[index] if len(index) < len(probs) else probs
    least = min_p[index].float()
    if bool((least > 0).any()):
        weights = weights.masked_fill(weights < (least * weights.amax(1)).unsqueeze(1), 0.0)
    return weights


def _sampled(
    logits: Tensor, tokens: Tensor, finite: Tensor, rows: Sequence[SamplingRow]
) -> list[SampledToken]:
    """Put the tokens, and the logprobs of rows that ask for them, into records."""
    sampled = [
        SampledToken(token) if is_finite else SampledToken(PENDING_TOKEN, failure=Code.NON_FINITE_LOGITS)
        for token, is_finite in zip(tokens.tolist(), finite.tolist(), strict=True)
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
