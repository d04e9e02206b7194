"""Room in the pool: out of blocks is a scheduling outcome, never an error.

Blocks come, in this order, from the free list, from the least recently used cached block, from waiting
requests that had kept some, and at last from running requests less deserving than the one that asks. Whoever
gives way loses the tail blocks that are needed and no more. A tenant at its own limit is a smaller pool: what
it needs more comes from its own requests alone.

Why this can't lock up: of all that run, the most deserving may take from every other one but those just
resumed, and these hold room for all they know, so they compute something without asking for more. The last
request of a tenant that holds anything is not held to the tenant's limit.

Why it can't thrash: whoever is stopped for an equal of its class comes back only with room for what it knows
and as many tokens more as it will compute again, and is not stopped for an equal until it has used that room.
So each round computes as much anew as it does again, but for the last, which may be cut short by the end:
equals make no request compute again more than twice its length. A more urgent one needs only some progress to
stop bulk.
"""

from collections.abc import Callable
from enum import Enum

from inference_engine.contract.limits import BLOCK_SIZE

from .inspection import Totals
from .kv_tables import Found, KVTables, blocks_for
from .request import Request
from .roster import Roster
from .shares import TenantShares
from .victims import Victims


class Admission(Enum):
    DONE = "done"
    NO_ROOM = "no room"
    """For anybody: nobody may overtake."""
    TENANT_FULL = "tenant full"
    """Its tenant has as many blocks as it may have; others can go on."""


class Reclaimer:
    def __init__(self, roster: Roster, kv: KVTables, shares: TenantShares, totals: Totals) -> None:
        self._roster = roster
        self._kv = kv
        self._shares = shares
        self._totals = totals
        self.victims = Victims(roster)
        self.begin_plan()

    def begin_plan(self) -> None:
        self._num_promised = 0
        self.copies: list[tuple[int, int]] = []
        """(source, target) blocks of the forks admitted in this plan."""
        self.victims.moved.clear()

    def grow_all(self, requests: list[Request]) -> bool:
        """One more block for each, where nobody has to give way for that; else nothing is done."""
        if self._shares.are_limited or self._kv.pool.num_available < len(requests):
            return False
        self._kv.extend_each(requests)
        return True

    def grow(self, request: Request) -> bool:
        """One more block for a running request; False: not in this step, it stalls."""
        tenant = request.tenant_id
        while self._is_over_limit(request, len(request.block_table), 1):
            if not (self._take_from_waiting(of_tenant(tenant)) or self._preempt_below(request, tenant)):
                return False
        while not self._is_coming(1):
            if not (self._take_from_waiting() or self._preempt_below(request)):
                return False
        if not self._kv.pool.num_available:
            self._num_promised += 1  # in quarantine still: it is there in the next step
            return False
        self._kv.extend(request, 1)
        return True

    def spare_block(self, request: Request) -> None:
        """One for drafts, if any is left when every running request has grown by one."""
        pool, num_own = self._kv.pool, len(request.block_table)
        if pool.num_available > len(self._roster.running) and not self._is_over_limit(request, num_own, 1):
            self._kv.extend(request, 1)

    def admit(self, request: Request) -> Admission:
        """Find, pin, evict and allocate all that a waiting request needs, or undo it all. A block to be
        copied needs no pin: whoever gets it meanwhile writes to it after the copy."""
        found = self._kv.find(request)
        num_reserved = _num_reserved(request, found)
        num_own = len(request.block_table) + len(found.shared)
        num_new = max(0, blocks_for(num_reserved) - num_own)
        self._kv.pin(request, found)
        outcome = self._make_room(request, num_own, num_new)
        if outcome is not Admission.DONE:
            self._kv.unpin(request, found)
            return outcome
        self._kv.take(request, found)
        self._kv.extend(request, num_new)
        if found.copied is not None:
            self.copies.append((found.copied, request.block_table[num_own]))
        request.leader = None
        if request.num_preemptions:
            request.guarded_until = max(request.preempted_at, num_reserved - 1)
        self.victims.moved.add(request.arrival)
        return Admission.DONE

    def can_start(self, request: Request) -> bool:
        """Not in the plan that stopped it, nor while a step in flight has a chunk of it."""
        is_in_flight = request.last_step > self._kv.pool.last_applied
        return not is_in_flight and request.arrival not in self.victims.moved

    def stop(self, victim: Request) -> None:
        """Preempt; its blocks then go like any waiting one's."""
        victim.preempted_at = victim.guarded_until = victim.num_scheduled
        victim.num_preemptions += 1
        self._totals.num_preemptions += 1
        self.victims.moved.add(victim.arrival)
        self._roster.preempt(victim)

    def _make_room(self, request: Request, num_own: int, count: int) -> Admission:
        """For the head of the queue: others that wait give up what they kept, and those stop that give
        way."""
        pool = self._kv.pool
        if self._is_over_limit(request, num_own, count, self._num_kept_beside):
            return Admission.TENANT_FULL
        if count > pool.num_available and count > pool.num_available + self._num_obtainable(request):
            return Admission.NO_ROOM
        while pool.num_available < count:
            if self._is_coming(count) or not (
                self._take_from_waiting(but=request) or self._stop_one(self.victims.for_room(request))
            ):
                return Admission.NO_ROOM
        while self._is_over_limit(request, num_own, count):
            if not self._take_from_waiting(of_tenant(request.tenant_id), but=request):
                return Admission.TENANT_FULL
        return Admission.DONE

    def _num_obtainable(self, request: Request) -> int:
        """At most: blocks shared by several count for each."""
        givers = [holder for holder in self._roster.holders.values() if holder is not request]
        return sum(len(giver.block_table) for giver in givers + self.victims.for_room(request))

    def _num_kept_beside(self, request: Request) -> int:
        """Blocks that others of its tenant, waiting, would give up for it."""
        holders = self._roster.holders.values()
        return sum(
            len(h.block_table) for h in holders if h.tenant_id == request.tenant_id and h is not request
        )

    def _is_over_limit(
        self,
        request: Request,
        num_own: int,
        count: int,
        num_given: Callable[[Request], int] = lambda request: 0,
    ) -> bool:
        """`count` blocks beside its own are more than its tenant may have, though `num_given` are given up.
        One request alone is never over."""
        limit = self._shares.max_blocks(request.tenant_id)
        if limit is None:
            return False
        num_held = self._kv.num_held[request.tenant_id] - num_given(request)
        return num_held > num_own and num_held + count > limit

    def _is_coming(self, count: int) -> bool:
        """`count` blocks are there, or will be once the step in flight ends."""
        pool = self._kv.pool
        return pool.num_available + pool.num_quarantined - self._num_promised >= count

    def _take_from_waiting(
        self, may_take: Callable[[Request], bool] = lambda holder: True, but: Request | None = None
    ) -> bool:
        """One tail block of the least deserving waiting request that holds any."""
        holders = self._roster.holders.values()
        givers = [holder for holder in holders if holder is not but and may_take(holder)]
        if not givers:
            return False
        giver = max(givers, key=self._roster.queue.rank)
        self._kv.cut(giver, len(giver.block_table) - 1)
        if not giver.block_table:
            del self._roster.holders[giver.arrival]
        return True

    def _preempt_below(self, claimant: Request, tenant_id: str | None = None) -> bool:
        return self._stop_one(self.victims.for_growth(claimant, tenant_id))

    def _stop_one(self, victims: list[Request]) -> bool:
        """The least deserving of them."""
        if not victims:
            return False
        self.stop(max(victims, key=self._roster.queue.rank))
        return True


def _num_reserved(request: Request, found: Found) -> int:
    """Tokens that a request must have room for."""
    num_again = max(0, request.num_reached - found.num_tokens)
    return min(request.num_known + num_again, request.num_prompt + request.max_tokens)


def of_tenant(tenant_id: str) -> Callable[[Request], bool]:
    return lambda request: request.tenant_id == tenant_id


def is_at_block_end(request: Request) -> bool:
    """The next position has no block yet."""
    return request.num_scheduled == len(request.block_table) * BLOCK_SIZE
