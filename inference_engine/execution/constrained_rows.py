"""The rows of one step whose outputs follow a grammar: masks are filled beside the forward pass.

    start (before the pass) -> masks() (before sampling) -> advance() (after it)

The step in flight may hold a token that the scheduler hasn't seen, so where a matcher has to be follows from
the chunk's position alone.
"""

from collections.abc import Sequence
from types import TracebackType

import torch

from inference_engine.constraints.errors import ConstraintError
from inference_engine.constraints.masks import MaskFiller, allowed_tokens
from inference_engine.contract.codes import Code
from inference_engine.execution.sampling.grammar_masks import GrammarMasks
from inference_engine.scheduling.output_matcher import OutputMatcher
from inference_engine.scheduling.step_plan import PENDING_TOKEN, SampledToken, ScheduledChunk


class ConstrainedRows:
    """`with`: no matcher is touched by anybody else until it has been left."""

    def __init__(self, chunks: Sequence[ScheduledChunk], filler: MaskFiller | None, vocab_size: int) -> None:
        self._vocab_size = vocab_size
        self._failures: dict[int, Code] = {}
        self._chunks: dict[int, ScheduledChunk] = {}
        self._matchers: list[OutputMatcher] = []
        for row, chunk in enumerate(chunk for chunk in chunks if chunk.samples):
            if chunk.request.matcher is not None:
                self._enter(row, chunk, chunk.request.matcher)
        self._pending = None
        if self._matchers:
            assert filler is not None, "a matcher in an engine that serves no constraints"
            self._pending = filler.start(self._matchers)

    def _enter(self, row: int, chunk: ScheduledChunk, matcher: OutputMatcher) -> None:
        """One that is behind ended or failed in the step before: nothing it samples now is looked at."""
        num_outputs = chunk.start + len(chunk.token_ids) - chunk.request.num_prompt
        try:
            matcher.roll_back(max(0, matcher.num_consumed - num_outputs))
        except ConstraintError as error:
            self._failures[row] = error.code
            return
        if matcher.num_consumed < num_outputs:
            self._failures[row] = Code.INTERNAL_ERROR
            return
        self._chunks[row] = chunk
        self._matchers.append(matcher)

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
        rows = list(self._chunks)
        self._failures |= {rows[index]: error.code for index, error in filled.failures.items()}
        kept = [index for index in range(len(rows)) if index not in filled.failures]
        allowed = torch.from_numpy(allowed_tokens(filled.masks[kept], self._vocab_size))
        return GrammarMasks([rows[index] for index in kept], allowed, self._failures)

    def advance(self, sampled: list[SampledToken]) -> None:
        """Consume what was sampled, [rows]; a token that ends its request is not part of its output."""
        for (row, chunk), matcher in zip(self._chunks.items(), self._matchers, strict=True):
            token = sampled[row]
            if token.failure is not None or token.token_id in chunk.request.stop_ids:
                continue
            try:
                matcher.advance(token.token_id)
            except ConstraintError:
                sampled[row] = SampledToken(PENDING_TOKEN, failure=Code.INTERNAL_ERROR)
