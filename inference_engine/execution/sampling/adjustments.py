"""What changes a row's logits besides its filters: penalties, biases, bad words, and how they are kept.

Order: repetition penalty, frequency and presence penalties, logit bias, then ids that are forbidden.
"""

from collections.abc import Sequence
from copy import copy

import numpy as np
from numpy.typing import NDArray

from inference_engine.contract.sampling import SamplingParams
from inference_engine.execution.sampling.history import TokenHistory
from inference_engine.scheduling.request import Request
from inference_engine.scheduling.step_plan import ScheduledChunk


class Adjustment:
    """Of one request."""

    __slots__ = ("bias", "bias_ids", "history")

    def __init__(self, params: SamplingParams, prompt_ids: Sequence[int]) -> None:
        self.history = TokenHistory(prompt_ids if params.repetition_penalty != 1.0 else [])
        self.bias_ids: NDArray[np.int64] = np.array(list(params.logit_bias), dtype=np.int64)
        self.bias: NDArray[np.float32] = np.array(list(params.logit_bias.values()), dtype=np.float32)

    def after(self, token_id: int) -> "Adjustment":
        """The same with one output more; this one stays as it is."""
        later = copy(self)
        later.history = self.history.copy()
        later.history.add(token_id)
        return later


class Adjustments:
    """Of the requests that sampled in the last step; of any other they are made anew from all its tokens.

    So nothing is kept of requests that have ended, and a preempted one comes back exact.
    """

    def __init__(self) -> None:
        self._kept: dict[Request, Adjustment] = {}

    def of_step(self, chunks: list[ScheduledChunk], token_ids: list[list[int]]) -> list[Adjustment | None]:
        """For each chunk, before its drafts; None where it samples nothing or nothing changes its logits.

        token_ids are the chunks' own, with no pending token left: the last one may not be among its
        request's outputs yet.
        """
        found = [
            self._up_to_date(chunk, ids[-1 - chunk.num_drafts]) if needs_adjustment(chunk) else None
            for chunk, ids in zip(chunks, token_ids, strict=True)
        ]
        self._kept = {
            chunk.request: adjustment
            for chunk, adjustment in zip(chunks, found, strict=True)
            if adjustment is not None
        }
        return found

    def _up_to_date(self, chunk: ScheduledChunk, last_id: int) -> Adjustment:
        """With the outputs before the one that this chunk samples first, `last_id` the last of them."""
        request = chunk.request
        num_outputs = chunk.start + len(chunk.token_ids) - chunk.num_drafts - request.num_prompt
        kept = self._kept.get(request)
        if kept is None or kept.history.num_outputs >= max(1, num_outputs):
            kept = Adjustment(request.sampling, request.prompt_ids)
        for token_id in request.output_ids[kept.history.num_outputs : max(0, num_outputs - 1)]:
            kept.history.add(token_id)
        if num_outputs:
            kept.history.add(last_id)
        return kept


def needs_adjustment(chunk: ScheduledChunk) -> bool:
    params = chunk.request.sampling
    has_penalty = params.presence_penalty or params.frequency_penalty or params.repetition_penalty != 1.0
    return chunk.samples and bool(has_penalty or params.logit_bias)
