"""The real scheduler on the chain model, with everything it promises checked after everything it does."""

from collections import deque

from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.events import Accepted, Refused
from inference_engine.contract.requests import Generate, TenantShare
from inference_engine.scheduling.integrity import BrokenInvariant
from inference_engine.scheduling.pace import shape_of
from inference_engine.scheduling.request import Request
from inference_engine.scheduling.scheduler import Scheduler, SchedulerConfig
from inference_engine.scheduling.step_plan import RequestUpdate, StepPlan

from .chain_model import Transcript
from .paged_memory import PagedMemory
from .plan_checks import check_apart, check_copies, check_plan, check_restraint
from .step_cost import StepCost


class Expectation:
    """What one accepted request must still say, and how often it may be preempted."""

    def __init__(self, request: Request, vocab_size: int, fails_at: int | None) -> None:
        self._request = request
        self._transcript = Transcript(request.tenant_id, request.sampling.seed, vocab_size, request.known_ids)
        self._num_outputs = len(request.output_ids)
        self._fails_at = fails_at
        self._num_preemptions = 0
        self._reached = -1

    def check_preemptions(self) -> None:
        """Never twice without progress."""
        request = self._request
        if request.num_preemptions == self._num_preemptions:
            return
        if request.num_preemptions > self._num_preemptions + 1 or request.num_reached <= self._reached:
            raise BrokenInvariant(f"{request} was preempted again without progress")
        self._num_preemptions, self._reached = request.num_preemptions, request.num_reached

    def check_update(self, update: RequestUpdate) -> None:
        """Several tokens may come at once where drafts were right; told one by one they would be the same."""
        expected = self._expected_update()
        while expected.finish is None and (update.finish or len(expected.token_ids) < len(update.token_ids)):
            more = self._expected_update()
            more.token_ids = expected.token_ids + more.token_ids
            expected = more
        if update != expected:
            raise BrokenInvariant(f"{update} instead of {expected}")
        if len(self._request.output_ids) != self._num_outputs:
            raise BrokenInvariant(f"{self._request} has outputs that were never told")

    def _expected_update(self) -> RequestUpdate:
        request, token_id = self._request, self._transcript.next_token()
        if self._fails_at == request.num_prompt + self._num_outputs:
            return RequestUpdate(request, [], finish=FinishReason.FAILED, code=Code.NON_FINITE_LOGITS)
        if token_id in request.stop_ids and self._num_outputs >= request.sampling.min_tokens:
            return RequestUpdate(request, [], finish=FinishReason.STOP, stop_token_id=token_id)
        self._num_outputs += 1
        self._transcript.append(token_id)
        is_last = self._num_outputs == request.max_tokens
        return RequestUpdate(request, [token_id], finish=FinishReason.LENGTH if is_last else None)


class CheckedScheduler:
    """Raises BrokenInvariant once something is wrong. Steps run when they are applied, as late as can be.

    `check_every`: tokens, plans and preemptions are all looked at; the whole state after each so many acts.
    """

    def __init__(self, config: SchedulerConfig, check_every: int = 1) -> None:
        self.config = config
        self._check_every = check_every
        self._num_acts = 0
        self.num_forks = 0
        """Prompts that went on from a copied block."""
        self.scheduler = Scheduler(config)
        self.in_flight: deque[StepPlan] = deque()
        self._failing: dict[str, int] = {}
        self._cost = StepCost()
        self._memory = PagedMemory(config.num_blocks, config.vocab_size, self._fails_at)
        self._expected: dict[int, Expectation] = {}

    def add(self, generate: Generate, fails_at: int | None = None) -> Accepted | Refused:
        """`fails_at`: absolute position of the token whose sampling is to fail."""
        answer = self.scheduler.add(generate)
        if isinstance(answer, Accepted):
            request = self.scheduler.requests[generate.request_id]
            self._expected[request.arrival] = Expectation(request, self.config.vocab_size, fails_at)
            if fails_at is not None:
                self._failing[generate.request_id] = fails_at
        self._check()
        return answer

    def abort(self, request_id: str, attempt: int = 0) -> Request | None:
        request = self.scheduler.abort(request_id, attempt, Code.CLIENT_GONE)
        if request is not None:
            self._forget(request)
        self._check()
        return request

    def set_tenant_shares(self, shares: dict[str, TenantShare]) -> None:
        self.scheduler.set_tenant_shares(shares)
        self._check()

    def can_plan(self) -> bool:
        return len(self.in_flight) <= self.config.lag

    def plan(self) -> StepPlan | None:
        running = frozenset(self.scheduler.roster.running)
        plan = self.scheduler.plan()
        self._check()
        for expectation in self._expected.values():
            expectation.check_preemptions()
        if plan is None:
            if self.scheduler.requests and not self.in_flight:
                raise BrokenInvariant(f"nothing is planned for {list(self.scheduler.requests.values())}")
            return None
        check_plan(plan, self.config)
        check_restraint(plan, self.config, running)
        for earlier in self.in_flight:
            check_apart(earlier, plan)
            check_copies(earlier, plan)
        self.num_forks += len(plan.copies)
        self.in_flight.append(plan)
        return plan

    def apply(self) -> list[RequestUpdate]:
        plan = self.in_flight.popleft()
        updates = self.scheduler.apply(plan, self._memory.run(plan))
        self.scheduler.observe_step(plan, self._cost.seconds(shape_of(plan)))
        for update in updates:
            self._expected[update.request.arrival].check_update(update)
            if update.finish is not None:
                self._forget(update.request)
        self._check()
        return updates

    def turn(self) -> list[RequestUpdate]:
        """One turn of an engine's loop."""
        planned = self.plan() if self.can_plan() else None
        if self.in_flight and (planned is None or len(self.in_flight) > self.config.lag):
            return self.apply()
        return []

    def drain(self, max_turns: int = 100_000) -> None:
        """Run until nothing is left; then every block is free or cached."""
        for _ in range(max_turns):
            if not self.scheduler.has_work():
                break
            self.turn()
        self.scheduler.check_integrity()
        stats = self.scheduler.stats()
        if self.scheduler.has_work() or stats.blocks_free + stats.blocks_cached != stats.blocks_total:
            raise BrokenInvariant(f"not at rest after {max_turns} turns: {stats}")

    def _check(self) -> None:
        self._num_acts += 1
        if self._num_acts % self._check_every == 0:
            self.scheduler.check_integrity()

    def _fails_at(self, request: Request) -> int | None:
        return self._failing.get(request.request_id)

    def _forget(self, request: Request) -> None:
        del self._expected[request.arrival]
        self._failing.pop(request.request_id, None)
