"""From the logits of a step to its tokens: batched, yet each row's token is a function of that row alone."""

from collections.abc import Sequence

import torch
from torch import Tensor

from inference_engine.contract.codes import Code
from inference_engine.execution.sampling.filters import Filters, draw_filtered
from inference_engine.execution.sampling.grammar_masks import GrammarMasks, MaskedRows
from inference_engine.execution.sampling.logprobs import row_logprobs
from inference_engine.execution.sampling.penalties import LogitEdits
from inference_engine.execution.sampling.philox import uniforms
from inference_engine.execution.sampling.row import SamplingRow
from inference_engine.execution.sampling.vocabulary import draw, first_argmax, reduce_blocks
from inference_engine.scheduling.step_plan import PENDING_TOKEN, SampledToken

MIN_TEMPERATURE = 1e-5
"""Smaller temperatures above 0 act as this one."""


class Sampler:
    """Keeps two matrices of the largest batch seen, so that a step maps no fresh memory."""

    def __init__(self) -> None:
        self._scaled = self._probs = torch.empty(0)

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
        finite = _finite_rows(logits, temperatures)
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

    def _choose(
        self, logits: Tensor, temperatures: Tensor, finite: Tensor, rows: Sequence[SamplingRow]
    ) -> Tensor:
        """int64 [R] from edited logits."""
        tokens = first_argmax(logits)
        is_random = (finite & (temperatures > 0)).tolist()
        random = [index for index, draws in enumerate(is_random) if draws]
        if random:
            self._draw(logits, temperatures, random, rows, tokens)
        return tokens

    def _draw(
        self,
        logits: Tensor,
        temperatures: Tensor,
        random: list[int],
        rows: Sequence[SamplingRow],
        tokens: Tensor,
    ) -> None:
        """Put the tokens of the rows in `random`, all finite and of positive temperature, into tokens [R]."""
        vocab_size = logits.shape[1]
        # Rows to be ranked first, so that both kinds are slices.
        random.sort(key=lambda index: not _is_ranked(rows[index], vocab_size))
        chosen = [rows[index] for index in random]
        num_ranked = sum(_is_ranked(row, vocab_size) for row in chosen)
        index = torch.tensor(random)
        scaled, probs = self._softmax(logits, index, temperatures)
        filters, uniform = _filters(chosen, vocab_size), _noise(chosen)
        ranked, plain = slice(0, num_ranked), slice(num_ranked, len(chosen))
        if num_ranked:
            tokens[index[ranked]] = draw_filtered(
                scaled[ranked], probs[ranked], filters.of(ranked), uniform[ranked]
            )
        if num_ranked < len(chosen):
            weights = _drop_unlikely(probs[plain], filters.min_p[plain])
            tokens[index[plain]] = draw(weights, uniform[plain])

    def _softmax(self, logits: Tensor, index: Tensor, temperatures: Tensor) -> tuple[Tensor, Tensor]:
        """Logits over temperature and their softmax, both [n, V], of the rows in index [n]."""
        shape = (len(index), logits.shape[1])
        if self._scaled.shape[0] < shape[0] or self._scaled.shape[1:] != shape[1:]:
            self._scaled, self._probs = torch.empty(shape), torch.empty(shape)
        scaled, probs = self._scaled[: len(index)], self._probs[: len(index)]
        divisor = temperatures[index].unsqueeze(1)
        if torch.equal(index, torch.arange(len(logits))):
            torch.div(logits, divisor, out=scaled)
        else:
            torch.index_select(logits, 0, index, out=scaled).div_(divisor)
        return scaled, torch.softmax(scaled, 1, out=probs)


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


def _is_ranked(row: SamplingRow, vocab_size: int) -> bool:
    """Whether top-k or top-p asks for a ranking."""
    return 0 < row.params.top_k < vocab_size or row.params.top_p < 1.0


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


def _drop_unlikely(probs: Tensor, min_p: Tensor) -> Tensor:
    """probs [n, V], in place 0 where under min_p of the row's highest."""
    for row in (min_p > 0).nonzero().flatten().tolist():
        one = probs[row]
        one.masked_fill_(one < min_p[row].float() * one.amax(), 0.0)
    return probs


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
