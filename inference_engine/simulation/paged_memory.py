"""Runs step plans on the chain model with KV in pages, exactly where the scheduler says.

Nothing is kept outside the pages, so a wrong page table, a block given away too early or a wrongly shared
prefix comes out as a wrong token.
"""

from collections.abc import Callable

from inference_engine.contract.codes import Code
from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.scheduling.request import Request
from inference_engine.scheduling.step_plan import (
    PENDING_TOKEN,
    SampledToken,
    ScheduledChunk,
    StepPlan,
    StepResult,
)

from .chain_model import kv_of, next_token, origin

POISON = 0x5EED


class PagedMemory:
    def __init__(
        self,
        num_blocks: int,
        vocab_size: int,
        fails_at: Callable[[Request], int | None] = lambda request: None,
    ) -> None:
        """`fails_at`: absolute position whose token can't be sampled for this request."""
        self.num_blocks = num_blocks
        self._vocab_size = vocab_size
        self._fails_at = fails_at
        self._pages = [[POISON] * BLOCK_SIZE for _ in range(num_blocks)]
        self._just_sampled: dict[int, int] = {}
        """Arrival number -> token of the step before this one."""

    def run(self, plan: StepPlan) -> StepResult:
        for source, target in plan.copies:
            self._pages[target] = list(self._pages[source])
        result = StepResult([None] * len(plan.chunks))
        just_sampled: dict[int, int] = {}
        for index, chunk in enumerate(plan.chunks):
            self._compute(chunk)
            if chunk.num_drafts:
                result.verified[index] = self._verified(chunk)
            elif chunk.samples:
                token = self._sample(chunk, len(chunk.token_ids))
                result.sampled[index], just_sampled[chunk.request.arrival] = token, token.token_id
        self._just_sampled = just_sampled
        return result

    def _compute(self, chunk: ScheduledChunk) -> None:
        for offset, token_id in enumerate(chunk.token_ids):
            known = self._just_sampled[chunk.request.arrival] if token_id == PENDING_TOKEN else token_id
            self._write(chunk, chunk.start + offset, known)

    def _verified(self, chunk: ScheduledChunk) -> list[SampledToken]:
        """Tokens for as long as each was sampled from drafts that were right."""
        held: list[SampledToken] = []
        for count in range(len(chunk.token_ids) - chunk.num_drafts, len(chunk.token_ids) + 1):
            held.append(self._sample(chunk, count))
            if held[-1].failure or held[-1].token_id not in chunk.token_ids[count : count + 1]:
                break
        return held

    def _sample(self, chunk: ScheduledChunk, count: int) -> SampledToken:
        """Behind the first `count` tokens of the chunk."""
        request, end = chunk.request, chunk.start + count
        if self._fails_at(request) == end:
            return SampledToken(0, failure=Code.NON_FINITE_LOGITS)
        token_id = next_token(self._read_all(chunk.block_table, end), request.sampling.seed, self._vocab_size)
        return SampledToken(token_id, logprob=-float(token_id), top=[(token_id, -float(token_id))])

    def _write(self, chunk: ScheduledChunk, position: int, token_id: int) -> None:
        if position:
            previous = self._read(chunk.block_table, position - 1)
        else:
            previous = origin(chunk.request.tenant_id)
        page = self._pages[chunk.block_table[position // BLOCK_SIZE]]
        page[position % BLOCK_SIZE] = kv_of(previous, token_id)

    def _read_all(self, block_table: list[int], end: int) -> list[int]:
        kv: list[int] = []
        for block in block_table[: -(-end // BLOCK_SIZE)]:
            kv += self._pages[block]
        return kv[:end]

    def _read(self, block_table: list[int], position: int) -> int:
        return self._pages[block_table[position // BLOCK_SIZE]][position % BLOCK_SIZE]
