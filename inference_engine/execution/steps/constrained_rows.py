"""The rows of one step whose outputs follow a grammar: masks are filled beside the forward pass.

    start (before the pass) -> masks() (before sampling) -> advance() (after it)

The step in flight may hold a token that the scheduler hasn't seen, so where a matcher has to be follows from
the chunk's position alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

import numpy as np
import torch

from inference_engine.constraints.errors import ConstraintError
from inference_engine.constraints.masks import MaskFiller, allowed_tokens
from inference_engine.contract.codes import Code
from inference_engine.execution.sampling.grammar_masks import GrammarMasks
from inference_engine.execution.steps.verification import Outcomes
from inference_engine.scheduling.output_matcher import OutputMatcher
from inference_engine.scheduling.step_plan import PENDING_TOKEN, SampledToken, ScheduledChunk


@dataclass(frozen=True, slots=True)
class Constrained:
    """A chunk that has a matcher."""

    first_row: int
    """Among the rows that are sampled; one for each draft follows."""
    chunk: ScheduledChunk
    matcher: OutputMatcher

    @property
    def draft_ids(self) -> list[int]:
        num_drafts = self.chunk.num_drafts
        return self.chunk.token_ids[-num_drafts:] if num_drafts else []


class ConstrainedRows:
    """`with`: no matcher is touched by anybody else until it has been left."""

    def __init__(self, chunks: Sequence[ScheduledChunk], filler: MaskFiller | None, vocab_size: int) -> None:
        self._vocab_size = vocab_size
        self._failures: dict[int, Code] = {}
        self._constrained: list[Constrained] = []
        self._num_masks: dict[int, int] = {}
        row = 0
        for chunk in chunks:
            if chunk.samples and chunk.request.matcher is not None:
                self._enter(Constrained(row, chunk, chunk.request.matcher))
            row += chunk.num_sampled
        self._pending = None
        if self._constrained:
            assert filler is not None, "a matcher in an engine that serves no constraints"
            self._pending = filler.start([(each.matcher, each.draft_ids) for each in self._constrained])

    def _enter(self, constrained: Constrained) -> None:
        """One that is behind ended or failed in the step before: nothing it samples now is looked at."""
        chunk, matcher = constrained.chunk, constrained.matcher
        num_outputs = chunk.start + len(chunk.token_ids) - chunk.num_drafts - chunk.request.num_prompt
        try:
            matcher.roll_back(max(0, matcher.num_consumed - num_outputs))
        except ConstraintError as error:
            self._failures[constrained.first_row] = error.code
            return
        if matcher.num_consumed < num_outputs:
            self._failures[constrained.first_row] = Code.INTERNAL_ERROR
            return
        self._constrained.append(constrained)

    def __enter__(self) -> "ConstrainedRows":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pending is not None:
            self._pending.result()

    def masks(self) -> GrammarMasks | None:
        """Waits for them. None: no row has a constraint."""
        if self._pending is None:
            return GrammarMasks([], torch.empty(0), self._failures) if self._failures else None
        filled = self._pending.result()
        rows: list[int] = []
        kept = []
        for index, (each, masks) in enumerate(zip(self._constrained, filled.masks, strict=True)):
            if index in filled.failures:
                self._failures[each.first_row] = filled.failures[index].code
                continue
            rows += range(each.first_row, each.first_row + len(masks))
            kept.append(masks)
            self._num_masks[each.first_row] = len(masks)
        if not kept:
            return GrammarMasks([], torch.empty(0), self._failures)
        allowed = torch.from_numpy(allowed_tokens(np.concatenate(kept), self._vocab_size))
        return GrammarMasks(rows, allowed, self._failures)

    def num_usable(self, first_row: int, num_sampled: int) -> int:
        """Of a chunk's sampled rows, how many its constraint has been held to; the others mean nothing."""
        return self._num_masks.get(first_row, num_sampled)

    def advance(self, outcomes: Outcomes) -> None:
        """Consume what was sampled; a token that ends its request is not part of its output."""
        for each in self._constrained:
            tokens = outcomes[each.first_row]
            for index, token in enumerate(tokens):
                if token.failure is not None or token.token_id in each.chunk.request.stop_ids:
                    break
                try:
                    each.matcher.advance(token.token_id)
                except ConstraintError:
                    tokens[index:] = [SampledToken(PENDING_TOKEN, failure=Code.INTERNAL_ERROR)]
                    break
