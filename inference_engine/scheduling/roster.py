"""Every live request, in exactly one place: the queue or the running set."""

from collections import Counter

from inference_engine.contract.codes import Code, FinishReason

from .policy import QueuePolicy
from .request import Request, RequestState


class Roster:
    def __init__(self, queue: QueuePolicy) -> None:
        self.queue = queue
        self.running: dict[int, Request] = {}
        """By arrival number, in the order they were (last) admitted."""
        self.by_id: dict[str, Request] = {}
        self.holders: dict[int, Request] = {}
        """Waiting requests that kept blocks when they were preempted."""
        self.num_waiting_by_tenant: Counter[str] = Counter()
        self.waiting_tokens_by_tenant: Counter[str] = Counter()

    def enter(self, request: Request) -> None:
        self.by_id[request.request_id] = request
        self._wait(request)

    def start(self, request: Request) -> None:
        self._stop_waiting(request)
        request.state = RequestState.RUNNING
        self.running[request.arrival] = request

    def preempt(self, request: Request) -> None:
        """Back to the queue, with all its blocks so far: whoever needs some takes them from its tail."""
        del self.running[request.arrival]
        request.state = RequestState.WAITING
        self._wait(request)
        self.holders[request.arrival] = request

    def leave(self, request: Request, reason: FinishReason, code: Code | None) -> None:
        """The end, from whichever place it is in."""
        if request.state is RequestState.WAITING:
            self._stop_waiting(request)
        else:
            del self.running[request.arrival]
        del self.by_id[request.request_id]
        request.state = RequestState.FINISHED
        request.finish_reason = reason
        request.code = code

    def _wait(self, request: Request) -> None:
        self.queue.push(request)
        request.queued_tokens = request.num_remaining
        self.num_waiting_by_tenant[request.tenant_id] += 1
        self.waiting_tokens_by_tenant[request.tenant_id] += request.queued_tokens

    def _stop_waiting(self, request: Request) -> None:
        self.queue.remove(request)
        self.holders.pop(request.arrival, None)
        tenant = request.tenant_id
        self.num_waiting_by_tenant[tenant] -= 1
        self.waiting_tokens_by_tenant[tenant] -= request.queued_tokens
        if not self.num_waiting_by_tenant[tenant]:
            del self.num_waiting_by_tenant[tenant], self.waiting_tokens_by_tenant[tenant]
