"""The pure scheduler: requests in, step plans out, results in, updates out. No device, no clock, no socket.

    add -> (queue) -> plan -> [ somebody runs the step ] -> apply -> updates
                       ^                                       |
                       +-------- until it finishes ------------+

With lag 1 another step is planned while the last one runs: a token not sampled yet is PENDING_TOKEN in the
plan, and a request that turns out to have ended has its chunk in flight dropped. Not thread-safe.
"""

from collections import deque
from collections.abc import Mapping

from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.events import Accepted, Refused, Stats
from inference_engine.contract.requests import Generate, TenantShare

from .applier import StepApplier
from .config import SchedulerConfig
from .drafting.drafter import Drafter
from .inspection import Totals, stats
from .intake import clamped_max_tokens, refusal, unmatched
from .integrity import check_integrity
from .kv_tables import KVTables
from .output_matcher import OutputMatcher
from .pace import Pace
from .planner import StepPlanner
from .policies import make_policy
from .reclaim import Reclaimer
from .request import Request
from .roster import Roster
from .shares import TenantShares
from .step_plan import RequestUpdate, StepPlan, StepResult

__all__ = ["Scheduler", "SchedulerConfig"]


class Scheduler:
    def __init__(self, config: SchedulerConfig) -> None:
        self.config = config
        self.kv = KVTables(
            config.num_blocks, config.cache_secret, enable_prefix_cache=config.enable_prefix_cache
        )
        self.roster = Roster(make_policy(config.policy, config.ageing_tokens))
        self.totals = Totals()
        self.in_flight: deque[StepPlan] = deque()
        self.shares = TenantShares(config.num_blocks)
        self._pace = Pace(config)
        reclaimer = Reclaimer(self.roster, self.kv, self.shares, self.totals)
        self._drafter = Drafter(config, self.roster, reclaimer, self._pace, self.totals)
        self._planner = StepPlanner(config, self.roster, reclaimer, self._pace, self._drafter, self.totals)
        self._applier = StepApplier(self.roster, self.kv, self._drafter, self.totals)
        self._num_arrivals = 0
        self._num_planned = 0

    def refuse_early(self, generate: Generate) -> Refused | None:
        """Why `add` would refuse this now, its constraint aside; for work that is to be done before."""
        refused = refusal(generate, self.config, self.roster, self.shares)
        self.totals.num_refused += refused is not None
        return refused

    def add(
        self, generate: Generate, matcher: OutputMatcher | None = None, waited_s: float = 0.0
    ) -> Accepted | Refused:
        """`matcher` has consumed the output ids. A constraint without one is refused. `waited_s`: seconds
        that it has been on its way here, for its TTFT target."""
        refused = (unmatched(generate) if matcher is None else None) or refusal(
            generate, self.config, self.roster, self.shares
        )
        if refused is not None:
            self.totals.num_refused += 1
            return refused
        request = self._new_request(generate)
        request.arrived_at = self._pace.first_tokens.now - waited_s
        request.matcher = matcher
        self.roster.enter(request)
        self._drafter.join(request)
        self.totals.num_accepted += 1
        if request.counts_prompt:
            self.totals.prompt_tokens += request.num_prompt
        return Accepted(
            request_id=request.request_id,
            attempt=request.attempt,
            prompt_tokens=request.num_prompt,
            cached_tokens=self.kv.num_cached_prompt_tokens(request),
            max_tokens=request.max_tokens,
        )

    def abort(self, request_id: str, attempt: int, code: Code) -> Request | None:
        """Take a request out at once, whatever it is doing. None: unknown, ended, or of a newer attempt."""
        request = self.roster.by_id.get(request_id)
        if request is None or request.attempt > attempt:
            return None
        self._applier.end(request, FinishReason.ABORTED, code)
        return request

    def plan(self) -> StepPlan | None:
        """The next step, or None: nothing to do, or nothing until the step in flight has been applied."""
        if len(self.in_flight) > self.config.lag:
            raise RuntimeError(
                f"{len(self.in_flight)} steps in flight, lag is {self.config.lag}: apply first"
            )
        plan = self._planner.plan(self._num_planned + 1)
        if not plan.chunks:
            return None
        self._num_planned += 1
        self.in_flight.append(plan)
        self.kv.pool.begin_step(plan.step)
        return plan

    def apply(self, plan: StepPlan, result: StepResult) -> list[RequestUpdate]:
        """Confirm the oldest step in flight. Requests aborted or ended since then get no update."""
        if not self.in_flight or self.in_flight[0] is not plan:
            raise RuntimeError(f"step {plan.step} is not the oldest in flight")
        if len(plan.chunks) != len(result.sampled):
            raise ValueError(f"{len(result.sampled)} results for {len(plan.chunks)} chunks")
        self.in_flight.popleft()
        self.kv.pool.end_step(plan.step)
        return self._applier.apply(plan, result)

    def observe_step(self, plan: StepPlan, seconds: float) -> None:
        """How long an applied step took: what the prefill budget is chosen by where there are targets, and
        what says whether drafts pay."""
        if self._pace.has_targets or not self._drafter.is_idle:
            self._pace.observe(plan, seconds)

    def set_tenant_shares(self, shares: dict[str, TenantShare]) -> None:
        """Replace the shares of the tenants named. Weights and queue limits hold from the next `add`, limits
        of KV blocks from the next block that one of their requests needs."""
        self.shares.update(shares)

    @property
    def requests(self) -> Mapping[str, Request]:
        """Live requests by id: those that wait or run."""
        return self.roster.by_id

    def has_work(self) -> bool:
        return bool(self.roster.by_id or self.in_flight)

    def stats(self) -> Stats:
        return stats(self.totals, self.roster, self.kv.pool)

    def blocks_by_tenant(self) -> dict[str, int]:
        """Distinct blocks that each tenant's requests refer to. No block belongs to two tenants."""
        return dict(self.kv.num_held)

    def check_integrity(self) -> None:
        """Raises BrokenInvariant. Cheap enough for idle moments, not for every step."""
        check_integrity(self.roster, self.kv)

    def _new_request(self, generate: Generate) -> Request:
        self._num_arrivals += 1
        request = Request(
            generate,
            arrival=self._num_arrivals,
            max_tokens=clamped_max_tokens(generate, self.config, self.shares),
            end_ids=self.config.end_ids,
        )
        request.weight = self.shares.weight(request.tenant_id, request.weight)
        return request
