"""From a step plan to the tensors of one forward pass.

chunks        A: 3 tokens, samples | B: 5 prefill tokens | C: 1 token and 2 drafts, samples
token_ids     a a a | b b b b b | c d d | 0      (padded to the row bucket)
sampled_rows      2 |           | 8 9 10
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from inference_engine.execution.attention.metadata import AttentionMetadata, build_metadata
from inference_engine.execution.products.row_buckets import row_bucket
from inference_engine.execution.sampling.adjustments import Adjustment
from inference_engine.execution.sampling.bad_words import forbidden_ends
from inference_engine.execution.sampling.row import SamplingRow
from inference_engine.scheduling.request import Request
from inference_engine.scheduling.step_plan import PENDING_TOKEN, ScheduledChunk, StepPlan, StepResult

PADDING_ID = 0
"""Any id of the vocabulary: what is computed from it is never looked at."""


@dataclass(frozen=True, slots=True)
class StepInputs:
    chunks: list[ScheduledChunk]
    token_ids: Tensor
    """int64 [T], padding included."""
    metadata: AttentionMetadata
    sampled_rows: Tensor
    """int64 [S]: the query rows whose logits are sampled, in the order of their chunks."""
    sampling: list[SamplingRow]
    """[S], aligned with sampled_rows."""


def build_inputs(
    chunks: list[ScheduledChunk],
    token_ids: list[list[int]],
    adjustments: list[Adjustment | None],
    padded: Callable[[int], int] = row_bucket,
) -> StepInputs:
    """Inputs of the chunks; token_ids are theirs, with no pending token left in them. `padded`: how many rows
    to run for so many tokens."""
    lengths = [len(ids) for ids in token_ids]
    num_rows = padded(sum(lengths))
    ids = np.full(num_rows, PADDING_ID, dtype=np.int64)
    ids[: sum(lengths)] = np.fromiter(chain.from_iterable(token_ids), dtype=np.int64, count=sum(lengths))
    metadata = build_metadata(
        [chunk.start for chunk in chunks], lengths, [chunk.block_table for chunk in chunks], num_rows
    )
    rows = [
        row
        for chunk, ids, adjustment in zip(chunks, token_ids, adjustments, strict=True)
        if chunk.samples
        for row in sampling_rows(chunk, ids, adjustment)
    ]
    return StepInputs(chunks, torch.from_numpy(ids), metadata, sampled_rows(chunks, lengths), rows)


def sampled_rows(chunks: list[ScheduledChunk], lengths: list[int]) -> Tensor:
    """int64 [S]: the last row of each chunk that samples, and as many before it as the chunk has drafts."""
    each = [chunk.num_sampled for chunk in chunks]
    if each.count(1) == len(chunks) == sum(lengths):  # nothing but decodes
        return _all_rows(len(chunks))
    counts = np.array(each, dtype=np.int64)
    to_the_end = np.repeat(counts.cumsum(), counts) - np.arange(counts.sum())
    return torch.from_numpy(np.repeat(np.cumsum(lengths), counts) - to_the_end)


@functools.cache
def _all_rows(count: int) -> Tensor:
    """int64 [count], the same one each time: to be read only."""
    return torch.arange(count)


def sampling_rows(
    chunk: ScheduledChunk, ids: list[int], adjustment: Adjustment | None
) -> Iterator[SamplingRow]:
    """How the tokens after the last known id of this chunk and after each of its drafts are sampled."""
    first = len(ids) - chunk.num_drafts
    for end in range(first, len(ids) + 1):
        if adjustment is not None and end > first:
            adjustment = adjustment.after(ids[end - 1])
        yield sampling_row(chunk.request, chunk.start, ids[:end], adjustment)


def sampling_row(request: Request, start: int, ids: list[int], adjustment: Adjustment | None) -> SamplingRow:
    """How the token after `ids`, tokens of the request from position `start` on, is sampled."""
    position = start + len(ids)
    forbidden = forbidden_ends(request, start, ids)
    if position - request.num_prompt < request.sampling.min_tokens:
        forbidden |= request.stop_ids
    return SamplingRow(request.sampling, request.choice, position, forbidden, adjustment)


class PendingTokens:
    """Tokens sampled by the step before, for chunks that were planned while it still ran (lag 1)."""

    def __init__(self) -> None:
        self._sampled: dict[tuple[str, int], int] = {}

    def resolve(self, chunk: ScheduledChunk) -> list[int]:
        """The chunk's ids, its last one filled in where it is pending.

        A request that failed in the step before has no token: whatever its chunk computes will be dropped.
        """
        ids = chunk.token_ids
        if ids[-1] != PENDING_TOKEN:
            return ids
        return [*ids[:-1], self._sampled.get(_key(chunk), PADDING_ID)]

    def forget(self) -> None:
        """A step begins: should it raise, its requests have no token."""
        self._sampled = {}

    def remember(self, plan: StepPlan, result: StepResult) -> None:
        """Keep what the plan's chunks sampled; what earlier steps sampled is known by now. A request with
        drafts is not planned again before it is."""
        self._sampled = {
            _key(chunk): token.token_id
            for chunk, token in zip(plan.chunks, result.sampled, strict=True)
            if token is not None and token.failure is None
        }


def _key(chunk: ScheduledChunk) -> tuple[str, int]:
    return chunk.request.request_id, chunk.request.attempt
