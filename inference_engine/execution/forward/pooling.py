"""From the hidden states of a text to its vector.

No bit of one depends on chunks or neighbours: a row of hidden states doesn't, the rows of a mean are added
one after the other in the order of their positions, and what follows sees one vector alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from inference_engine.contract.codes import Code
from inference_engine.execution.models.embedding_files import EmbeddingFiles, Pooling
from inference_engine.scheduling.request import Request
from inference_engine.scheduling.step_plan import PENDING_TOKEN, SampledToken, ScheduledChunk, StepResult

SHORTEST = 1e-12
"""A vector of less length is divided by this instead."""


@dataclass(slots=True)
class RowSum:
    """Of the hidden states of a request's first `num_rows` positions: fp32 [hidden]."""

    total: Tensor
    num_rows: int = 0

    def add(self, start: int, rows: Tensor) -> None:
        """`rows` fp32 [T, hidden], of positions from `start` on. What is computed again is there already."""
        assert start <= self.num_rows, "a row of the mean is missing"
        for row in rows[self.num_rows - start :]:
            self.total += row
        self.num_rows = max(self.num_rows, start + len(rows))

    def mean(self) -> Tensor:
        return self.total / self.num_rows


def pooled_result(chunks: Sequence[ScheduledChunk], states: Tensor, embedding: EmbeddingFiles) -> StepResult:
    """`states` [T, hidden]: the rows of all chunks, padding behind. A chunk that samples has a vector."""
    result = StepResult([None] * len(chunks))
    first = 0
    for index, chunk in enumerate(chunks):
        rows = states[first : first + len(chunk.token_ids)]
        first += len(rows)
        pooled = _pooled(chunk, rows, embedding.pooling)
        if pooled is not None:
            result.sampled[index] = _outcome(pooled, is_normalized=embedding.is_normalized)
    return result


def _pooled(chunk: ScheduledChunk, rows: Tensor, pooling: Pooling) -> Tensor | None:
    """fp32 [hidden] where the text ends with this chunk."""
    if pooling is Pooling.LAST_TOKEN:
        return rows[-1].float() if chunk.samples else None
    total = _sum_of(chunk.request, rows)
    total.add(chunk.start, rows.float())
    return total.mean() if chunk.samples else None


def _sum_of(request: Request, rows: Tensor) -> RowSum:
    if not isinstance(request.pooled, RowSum):
        request.pooled = RowSum(rows.new_zeros(rows.shape[1], dtype=torch.float32))
    return request.pooled


def _outcome(pooled: Tensor, *, is_normalized: bool) -> SampledToken:
    if not torch.isfinite(pooled).all():
        return SampledToken(PENDING_TOKEN, failure=Code.NON_FINITE_LOGITS)
    if is_normalized:
        precise = pooled.double()
        pooled = (precise / precise.square().sum().sqrt().clamp_min(SHORTEST)).float()
    return SampledToken(PENDING_TOKEN, vector=pooled.numpy().astype("<f4").tobytes())
