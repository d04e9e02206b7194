"""Logprobs of prompt tokens: every row of a prompt through the head, a few at a time.

Row r of a chunk that starts at position s predicts position s + r + 1, as far as the prompt goes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from inference_engine.contract.events import TokenLogprobs
from inference_engine.execution.forward.packed_forward import logits_of_rows
from inference_engine.execution.sampling.logprobs import row_logprobs
from inference_engine.scheduling.step_plan import ScheduledChunk

HEAD_ROWS = 64
"""Rows of fp32 logits held at once."""


@dataclass(frozen=True, slots=True)
class ScoredChunk:
    index: int
    """Among the chunks of the step."""
    first_row: int
    target_ids: list[int]
    """What the rows from first_row on predict."""
    num_top: int


def scored_chunks(chunks: Sequence[ScheduledChunk]) -> Iterator[ScoredChunk]:
    row = 0
    for index, chunk in enumerate(chunks):
        request, num_tokens = chunk.request, len(chunk.token_ids)
        num_top = request.sampling.prompt_logprobs
        if num_top is not None and chunk.start < request.num_prompt - 1:
            target_ids = request.prompt_ids[chunk.start + 1 : chunk.start + num_tokens + 1]
            yield ScoredChunk(index, row, target_ids, num_top)
        row += num_tokens


def score_prompts(
    module: Any, states: Tensor, chunks: Sequence[ScheduledChunk]
) -> dict[int, list[TokenLogprobs] | None]:
    """By index of the chunk, for those that want it; None where a logit is not finite."""
    return {scored.index: _score(module, states, scored) for scored in scored_chunks(chunks)}


def _score(module: Any, states: Tensor, scored: ScoredChunk) -> list[TokenLogprobs] | None:
    found: list[TokenLogprobs] = []
    for start in range(0, len(scored.target_ids), HEAD_ROWS):
        target_ids = scored.target_ids[start : start + HEAD_ROWS]
        first = scored.first_row + start
        logits = logits_of_rows(module, states, torch.arange(first, first + len(target_ids))).cpu()
        if not torch.isfinite(logits).all():
            return None
        rows = row_logprobs(logits, torch.tensor(target_ids), [scored.num_top] * len(target_ids))
        found += [TokenLogprobs(logprob=logprob, top=top) for logprob, top in rows]
    return found
