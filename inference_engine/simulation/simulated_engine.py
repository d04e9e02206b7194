"""The real scheduler on a simulated clock: requests arrive by a trace, a step takes what a linear cost says.

No device and no waiting: an hour of a busy engine is replayed in minutes, the same every time.
"""

import heapq
from collections.abc import Iterable

from inference_engine.contract.events import Refused
from inference_engine.contract.requests import Generate
from inference_engine.scheduling.pace import shape_of
from inference_engine.scheduling.scheduler import Scheduler, SchedulerConfig
from inference_engine.scheduling.step_plan import RequestUpdate, SampledToken, StepPlan, StepResult

from .service_log import ServiceLog
from .step_cost import StepCost

TOKEN = SampledToken(7)


class SimulatedEngine:
    def __init__(self, config: SchedulerConfig, cost: StepCost | None = None) -> None:
        self.scheduler = Scheduler(config)
        self.log = ServiceLog()
        self.now = 0.0
        self.first_token_after: dict[str, float] = {}
        """Request id -> seconds since its arrival."""
        self.step_seconds: list[float] = []
        self.num_refused = 0
        self._cost = cost or StepCost()
        self._arrived_at: dict[str, float] = {}

    def run(self, arrivals: Iterable[tuple[float, Generate]], until: float) -> None:
        """Replays (seconds, request) in any order; stops at `until`, or once nothing is left."""
        events = [(at, number, generate) for number, (at, generate) in enumerate(arrivals)]
        heapq.heapify(events)
        while self.now < until:
            while events and events[0][0] <= self.now:
                at, _, generate = heapq.heappop(events)
                self._arrive(at, generate)
            plan = self.scheduler.plan()
            if plan is not None:
                self._run_step(plan)
            elif events:
                self.now = min(until, events[0][0])
            else:
                break
        self.log.note_waiting(self.now, ())

    def _arrive(self, at: float, generate: Generate) -> None:
        if isinstance(self.scheduler.add(generate, waited_s=self.now - at), Refused):
            self.num_refused += 1
        else:
            self._arrived_at[generate.request_id] = at

    def _run_step(self, plan: StepPlan) -> None:
        seconds = self._cost.seconds(shape_of(plan))
        self.now += seconds
        self.step_seconds.append(seconds)
        self.log.note_prompts(self.now, plan)
        result = StepResult([TOKEN if chunk.samples else None for chunk in plan.chunks])
        updates = self.scheduler.apply(plan, result)
        self.scheduler.observe_step(plan, seconds)
        self.log.note_outputs(self.now, updates)
        self.log.note_waiting(self.now, self.scheduler.roster.num_waiting_by_tenant.keys())
        self._note_first_tokens(updates)

    def _note_first_tokens(self, updates: list[RequestUpdate]) -> None:
        for update in updates:
            request_id = update.request.request_id
            if len(update.request.output_ids) == 1 and request_id in self._arrived_at:
                self.first_token_after[request_id] = self.now - self._arrived_at.pop(request_id)
