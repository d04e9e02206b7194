"""One step's plan: each request gets some of a token budget, so that computed tokens catch up with known.

Running decodes come first, then started prefills, then new requests as far as places and blocks go.
"""

from .config import SchedulerConfig
from .inspection import Totals
from .prefill_shares import max_prefills, share_budget
from .reclaim import Reclaimer, is_at_block_end
from .request import PENDING_TOKEN, Request, RequestState
from .roster import Roster
from .step_plan import ScheduledChunk


class StepPlanner:
    def __init__(self, config: SchedulerConfig, roster: Roster, reclaimer: Reclaimer, totals: Totals) -> None:
        self._config = config
        self._roster = roster
        self._reclaimer = reclaimer
        self._totals = totals

    def plan_chunks(self) -> list[ScheduledChunk]:
        self._reclaimer.begin_plan()
        decodes, growing, prefills = self._sort_running()
        if growing:
            decodes += self._grow(growing)
            decodes = [request for request in decodes if request.state is RequestState.RUNNING]
            prefills = [request for request in prefills if request.state is RequestState.RUNNING]
        budget = self._prefill_budget(len(decodes))
        self._admit(prefills, budget)
        chunks = [schedule(request, 1) for request in decodes]
        shares = share_budget([request.num_remaining for request in prefills], budget)
        chunks += [schedule(request, share) for request, share in zip(prefills, shares, strict=True) if share]
        return chunks

    def _sort_running(self) -> tuple[list[Request], list[Request], list[Request]]:
        """(one token to compute, the same but a block short, several to compute)"""
        decodes: list[Request] = []
        growing: list[Request] = []
        prefills: list[Request] = []
        for request in self._roster.running.values():
            remaining = request.num_known + request.num_pending - request.num_scheduled
            if remaining > 1:
                prefills.append(request)
            elif remaining and not request.is_ending:
                (growing if is_at_block_end(request) else decodes).append(request)
        return decodes, growing, prefills

    def _grow(self, growing: list[Request]) -> list[Request]:
        """Those that got their block; the most deserving are asked first, and may stop the others."""
        grown = []
        for request in sorted(growing, key=self._roster.queue.rank):
            if request.state is RequestState.RUNNING and self._reclaimer.grow(request):
                grown.append(request)
        return grown

    def _prefill_budget(self, num_decodes: int) -> int:
        if not num_decodes:
            return self._config.max_step_tokens
        return min(self._config.prefill_budget, self._config.max_step_tokens - num_decodes)

    def _admit(self, prefills: list[Request], budget: int) -> None:
        """Start the heads of the queue; when one finds no room, nobody overtakes it. One that was preempted
        with a chunk in flight comes back after that, so that chunks of one request never overlap."""
        roster = self._roster
        while len(prefills) < max_prefills(budget) and len(roster.running) < self._config.max_running:
            request = roster.queue.head()
            if request is None or request.num_in_flight or not self._reclaimer.admit(request):
                return
            roster.start(request)
            self._count_cached(request)
            prefills.append(request)

    def _count_cached(self, request: Request) -> None:
        """Prompt tokens that the request never had to compute; later matches only bring back its own work."""
        if not request.num_preemptions:
            request.cached_tokens = min(request.num_computed, request.num_prompt)
            self._totals.cached_prompt_tokens += request.cached_tokens


def schedule(request: Request, num_tokens: int) -> ScheduledChunk:
    """Every step does this for every decode: the one token of a decode is fetched without slicing."""
    start = request.num_scheduled
    end = start + num_tokens
    samples = end == request.num_known + request.num_pending
    if start >= request.num_known:
        token_ids = [PENDING_TOKEN]
    elif samples and num_tokens == 1 and request.output_ids:
        token_ids = [request.output_ids[-1]]
    else:
        token_ids = request.ids_between(start, end)
    request.num_scheduled = end
    request.num_pending += samples
    request.num_chunks += 1
    request.num_in_flight += 1
    return ScheduledChunk(request, start, token_ids, request.block_table, samples)
