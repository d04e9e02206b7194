"""What each tenant was given, and when it waited for more: from this the fairness of a run is read."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from itertools import accumulate

from inference_engine.scheduling.service_counters import OUTPUT_TOKEN_COST, PROMPT_TOKEN_COST
from inference_engine.scheduling.step_plan import RequestUpdate, StepPlan


@dataclass(frozen=True, slots=True)
class Backlog:
    """The tenant had something waiting after every step between these times."""

    tenant_id: str
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class Gap:
    """Services of the two tenants that differ most, of all those backlogged through one window."""

    service: float
    since: float
    most: str
    least: str
    num_windows: int
    """In which at least two tenants were backlogged all the time."""


class ServiceLog:
    """Service: prompt tokens when computed for the first time, and output tokens, weighted as the counters
    do."""

    def __init__(self) -> None:
        self.total = 0.0
        self.backlogs: list[Backlog] = []
        self._by_second: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        self._waiting_since: dict[str, float] = {}

    def note_prompts(self, at: float, plan: StepPlan) -> None:
        """Before the step is applied: what is computed again was served already."""
        for chunk in plan.chunks:
            request, end = chunk.request, chunk.start + len(chunk.token_ids)
            num_new = min(end, request.num_prompt) - max(chunk.start, request.num_reached)
            if num_new > 0:
                self._serve(at, request.tenant_id, num_new * PROMPT_TOKEN_COST / request.weight)

    def note_outputs(self, at: float, updates: list[RequestUpdate]) -> None:
        for update in updates:
            service = len(update.token_ids) * OUTPUT_TOKEN_COST / update.request.weight
            self._serve(at, update.request.tenant_id, service)

    def note_waiting(self, at: float, tenants: Collection[str]) -> None:
        for tenant in [tenant for tenant in self._waiting_since if tenant not in tenants]:
            self.backlogs.append(Backlog(tenant, self._waiting_since.pop(tenant), at))
        for tenant in tenants:
            self._waiting_since.setdefault(tenant, at)

    def largest_gap(self, window_s: int, until: float) -> Gap:
        """Over all windows that begin at a full second."""
        given = {tenant: self._accumulated(tenant, int(until)) for tenant in self._by_second}
        gaps: list[tuple[float, float, str, str]] = []
        for since in range(int(until) - window_s):
            services = {
                backlog.tenant_id: given[backlog.tenant_id][since + window_s]
                - given[backlog.tenant_id][since]
                for backlog in self.backlogs
                if backlog.since <= since and backlog.until >= since + window_s and backlog.tenant_id in given
            }
            if len(services) > 1:
                most, least = max(services, key=services.__getitem__), min(services, key=services.__getitem__)
                gaps.append((services[most] - services[least], since, most, least))
        return Gap(*max(gaps, default=(0.0, 0.0, "", "")), num_windows=len(gaps))

    def _accumulated(self, tenant: str, num_seconds: int) -> list[float]:
        """Service before second 0, 1, 2, ..."""
        seconds = self._by_second[tenant]
        return [0.0, *accumulate(seconds[second] for second in range(num_seconds))]

    def _serve(self, at: float, tenant: str, service: float) -> None:
        self.total += service
        self._by_second[tenant][int(at)] += service
