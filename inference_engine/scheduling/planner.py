"""One step's plan: each request gets some of a token budget, so that computed tokens catch up with known.

Running decodes come first, then started prefills, then new requests as far as places and blocks go.
"""

from inference_engine.contract.limits import BLOCK_SIZE

from .bulk_restraint import BulkRestraint
from .config import SchedulerConfig
from .drafting.drafter import Drafter
from .inspection import Totals
from .pace import Pace
from .prefill_shares import max_prefills, share_budget
from .reclaim import Admission, Reclaimer, is_at_block_end
from .request import PENDING_TOKEN, Request, RequestState
from .roster import Roster
from .step_plan import ScheduledChunk, StepPlan, num_tokens

_PENDING_IDS = [PENDING_TOKEN]


class StepPlanner:
    def __init__(
        self,
        config: SchedulerConfig,
        roster: Roster,
        reclaimer: Reclaimer,
        pace: Pace,
        drafter: Drafter,
        totals: Totals,
    ) -> None:
        self._config = config
        self._roster = roster
        self._reclaimer = reclaimer
        self._pace = pace
        self._drafter = drafter
        self._totals = totals
        self._restraint = BulkRestraint(config.bulk_tokens)

    def plan(self, step: int) -> StepPlan:
        """Without chunks where there is nothing to do, or nothing until the step in flight has been
        applied."""
        self._reclaimer.begin_plan()
        decodes, growing, prefills = self._sort_running()
        if growing and self._grow(growing, decodes):
            decodes, prefills = _still_running(decodes), _still_running(prefills)
        budget = self._pace.prefill_budget(decodes, lambda: self._prompts(prefills))
        if self._admit(prefills, budget):
            decodes, prefills = _still_running(decodes), _still_running(prefills)
        restrained = self._restraint.hold_back(decodes, prefills) if self._roster.running_bulk else None
        bulk_decodes: list[Request] = []
        if restrained is not None:
            decodes, prefills, bulk_decodes = restrained[:3]
        longer: list[ScheduledChunk] = []
        if not self._drafter.is_idle:
            decodes, longer = self._drafter.draft(decodes, step)
            num_decodes = len(decodes) + len(bulk_decodes)
            budget = min(budget, self._config.max_step_tokens - num_decodes - num_tokens(longer))
        chunks = schedule_decodes(decodes + bulk_decodes, step)
        if restrained is not None:
            bulk_budget = min(budget, restrained.bulk_budget)
            longer += _schedule_all(restrained.bulk_prefills, step, bulk_budget)
            budget -= bulk_budget
        longer += _schedule_all(prefills, step, budget)
        size = len(chunks) + num_tokens(longer)
        return StepPlan(step, chunks + longer, self._reclaimer.copies, size)

    def _prompts(self, prefills: list[Request]) -> list[Request]:
        """Those being computed, and whoever is next."""
        head = self._roster.queue.head()
        return prefills if head is None else [*prefills, head]

    def _sort_running(self) -> tuple[list[Request], list[Request], list[Request]]:
        """(one token to compute, the same but a block short, several to compute)"""
        decodes: list[Request] = []
        growing: list[Request] = []
        prefills: list[Request] = []
        for request in self._roster.running.values():
            num_scheduled = request.num_scheduled
            num_expected = request.num_expected
            if num_expected > num_scheduled + 1:
                prefills.append(request)
            elif num_expected > num_scheduled and num_expected < request.max_known:
                if num_scheduled % BLOCK_SIZE or not is_at_block_end(request):
                    decodes.append(request)
                else:
                    growing.append(request)
        return decodes, growing, prefills

    def _grow(self, growing: list[Request], decodes: list[Request]) -> bool:
        """Those that get their block join the decodes; the most deserving are asked first, and may stop the
        others. Returns whether somebody had to stop."""
        if self._reclaimer.grow_all(growing):
            decodes += growing
            return False
        num_preemptions = self._totals.num_preemptions
        for request in sorted(growing, key=self._roster.queue.rank):
            if request.state is RequestState.RUNNING and self._reclaimer.grow(request):
                decodes.append(request)
        return self._totals.num_preemptions > num_preemptions

    def _admit(self, prefills: list[Request], budget: int) -> bool:
        """Start the heads of the queue. When one finds no room nobody overtakes it, but for a tenant that is
        at its own limit. Returns whether somebody had to stop."""
        num_preemptions = self._totals.num_preemptions
        full_tenants: set[str] = set()
        while (request := self._next(prefills, budget, full_tenants)) is not None:
            giver = self._reclaimer.victims.for_place(request) if self._is_full() else None
            if self._is_full() and giver is None:
                break
            outcome = self._reclaimer.admit(request)
            if outcome is Admission.NO_ROOM:
                break
            if outcome is Admission.TENANT_FULL:
                full_tenants.add(request.tenant_id)
                continue
            if giver is not None and self._is_full():
                self._reclaimer.stop(giver)
            self._roster.start(request)
            self._count_cached(request)
            prefills.append(request)
        return self._totals.num_preemptions > num_preemptions

    def _next(self, prefills: list[Request], budget: int, full_tenants: set[str]) -> Request | None:
        """The head of the queue, if it could start now but for place and blocks. One that was preempted with
        a chunk in flight comes back after that, so that chunks of one request never overlap. A tenant that
        computes no prompt yet isn't held back by another that computes several."""
        request = self._roster.queue.head(full_tenants)
        if request is None or not self._reclaimer.can_start(request):
            return None
        if len(prefills) < max_prefills(budget):
            return request
        before = [other.tenant_id for other in prefills if other.class_rank <= request.class_rank]
        num_before = len(before) if request.tenant_id in before else len(set(before))
        return request if num_before < max_prefills(budget) else None

    def _is_full(self) -> bool:
        return len(self._roster.running) >= self._config.max_running

    def _count_cached(self, request: Request) -> None:
        """Prompt tokens that the request never had to compute; later matches only bring back its own work."""
        if not request.num_preemptions:
            request.cached_tokens = min(request.num_computed, request.num_prompt)
            if request.counts_prompt:
                self._totals.cached_prompt_tokens += request.cached_tokens


def _still_running(requests: list[Request]) -> list[Request]:
    return [request for request in requests if request.state is RequestState.RUNNING]


def _schedule_all(prefills: list[Request], step: int, budget: int) -> list[ScheduledChunk]:
    shares = share_budget(prefills, budget)
    return [schedule(request, step, share) for request, share in zip(prefills, shares, strict=True) if share]


def schedule_decodes(requests: list[Request], step: int) -> list[ScheduledChunk]:
    """The last token of each, known or not."""
    chunks = []
    for request in requests:
        start = request.num_scheduled
        token_ids = request.newest_ids if start < request.num_known else _PENDING_IDS
        request.num_scheduled = start + 1
        request.num_expected = start + 2
        request.num_chunks += 1
        request.last_step = step
        chunks.append(ScheduledChunk(request, start, token_ids, request.block_table, True))
    return chunks


def schedule(request: Request, step: int, num_tokens: int) -> ScheduledChunk:
    start = request.num_scheduled
    end = start + num_tokens
    samples = end == request.num_expected
    token_ids = _PENDING_IDS if start >= request.num_known else request.ids_between(start, end)
    request.num_scheduled = end
    request.num_expected += samples
    request.num_chunks += 1
    request.last_step = step
    return ScheduledChunk(request, start, token_ids, request.block_table, samples)
