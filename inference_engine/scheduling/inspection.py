"""Looking at a scheduler from outside: stats, who holds which blocks, and whether its invariants hold."""

from dataclasses import asdict, dataclass

from inference_engine.contract.codes import FinishReason
from inference_engine.contract.events import Stats

from .block_pool import BlockPool
from .roster import Roster


@dataclass(slots=True)
class Totals:
    """Counters of a scheduler's life. They only rise."""

    num_steps: int = 0
    prompt_tokens: int = 0
    cached_prompt_tokens: int = 0
    output_tokens: int = 0
    num_accepted: int = 0
    num_refused: int = 0
    num_finished: int = 0
    num_aborted: int = 0
    num_failed: int = 0
    num_preemptions: int = 0
    num_recomputed_tokens: int = 0
    num_computed_tokens: int = 0
    num_drafted_tokens: int = 0
    num_accepted_tokens: int = 0

    def count_end(self, reason: FinishReason) -> None:
        if reason is FinishReason.ABORTED:
            self.num_aborted += 1
        elif reason is FinishReason.FAILED:
            self.num_failed += 1
        else:
            self.num_finished += 1


def stats(totals: Totals, roster: Roster, pool: BlockPool) -> Stats:
    waiting_tokens = sum(roster.waiting_tokens_by_tenant.values())
    for request in roster.running.values():
        if request.num_remaining > 1:
            waiting_tokens += request.num_remaining
    return Stats(
        num_waiting=roster.num_waiting,
        num_running=len(roster.running),
        waiting_tokens=waiting_tokens,
        blocks_total=pool.num_blocks,
        blocks_free=pool.num_free,
        blocks_cached=pool.num_cached,
        blocks_referenced=pool.num_referenced,
        blocks_quarantined=pool.num_quarantined,
        **asdict(totals),
    )
