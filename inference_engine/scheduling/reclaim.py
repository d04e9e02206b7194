"""Room in the pool: out of blocks is a scheduling outcome, never an error.

Blocks come, in this order, from the free list, from the least recently used cached block, from waiting
requests that had kept some, and at last from running requests less deserving than the one that asks. Whoever
gives way loses the tail blocks that are needed and no more.

Why this can't lock up: of all that run, the most deserving may take from every other one but those just
resumed, and these hold room for all they know, so they compute something without asking for more.
"""

from inference_engine.contract.limits import BLOCK_SIZE

from .inspection import Totals
from .kv_tables import KVTables
from .request import Request
from .roster import Roster


class Reclaimer:
    def __init__(self, roster: Roster, kv: KVTables, totals: Totals) -> None:
        self._roster = roster
        self._kv = kv
        self._totals = totals
        self._num_promised = 0

    def begin_plan(self) -> None:
        self._num_promised = 0

    def grow(self, request: Request) -> bool:
        """One more block for a running request; False: not in this step, it stalls."""
        while not self._is_coming(1):
            if not (self._take_from_waiting() or self._preempt_below(request)):
                return False
        if not self._kv.pool.num_available:
            self._num_promised += 1  # in quarantine still: it is there in the next step
            return False
        self._kv.extend(request, 1)
        return True

    def admit(self, request: Request) -> bool:
        """Match, pin, evict and allocate room for all that is known of a waiting request, or undo it all."""
        pool = self._kv.pool
        matched = self._kv.match(request)
        pool.pin(matched)
        num_new = self._kv.num_missing(request) - len(matched)
        if not self._make_room(request, num_new):
            pool.release(matched)
            return False
        self._kv.take_matched(request, matched)
        self._kv.extend(request, num_new)
        return True

    def _make_room(self, request: Request, count: int) -> bool:
        """For the head of the queue: others that wait give up what they kept, runners don't."""
        pool = self._kv.pool
        others = (other for other in self._roster.holders.values() if other is not request)
        if count > pool.num_available + sum(len(other.block_table) for other in others):
            return False
        while pool.num_available < count:
            if self._is_coming(count) or not self._take_from_waiting(but=request):
                return False
        return True

    def _is_coming(self, count: int) -> bool:
        """`count` blocks are there, or will be once the step in flight ends."""
        pool = self._kv.pool
        return pool.num_available + pool.num_quarantined - self._num_promised >= count

    def _take_from_waiting(self, but: Request | None = None) -> bool:
        """One tail block of the least deserving waiting request that holds any."""
        holders = [holder for holder in self._roster.holders.values() if holder is not but]
        if not holders:
            return False
        giver = max(holders, key=self._roster.queue.rank)
        self._kv.cut(giver, len(giver.block_table) - 1)
        if not giver.block_table:
            del self._roster.holders[giver.arrival]
        return True

    def _preempt_below(self, claimant: Request) -> bool:
        """Stop the least deserving of those below `claimant`; its blocks then go like any waiting one's."""
        rank = self._roster.queue.rank
        victims = [request for request in self._roster.running.values() if request.can_be_preempted]
        victim = max(victims, key=rank, default=claimant)
        if rank(victim) <= rank(claimant):
            return False
        victim.preempted_at = victim.num_scheduled
        victim.num_preemptions += 1
        self._totals.num_preemptions += 1
        self._roster.preempt(victim)
        return True


def is_at_block_end(request: Request) -> bool:
    """The next position has no block yet."""
    return request.num_scheduled == len(request.block_table) * BLOCK_SIZE
