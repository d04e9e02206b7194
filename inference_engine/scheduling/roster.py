"""Every live request, in exactly one place: the queue, beside it behind its group's leader, or the running
set."""

from collections import Counter
from collections.abc import Iterator

from inference_engine.contract.codes import Code, FinishReason

from .groups import Groups
from .policy import QueuePolicy
from .request import BULK, Request, RequestState


class Roster:
    def __init__(self, queue: QueuePolicy) -> None:
        self.queue = queue
        self.groups = Groups()
        self.running: dict[int, Request] = {}
        """By arrival number, in the order they were (last) admitted."""
        self.by_id: dict[str, Request] = {}
        self.holders: dict[int, Request] = {}
        """Waiting requests that kept blocks when they were preempted."""
        self.running_bulk: dict[int, Request] = {}
        """Those of the lowest class among them, that may have to give way."""
        self.num_waiting_by_tenant: Counter[str] = Counter()
        self.waiting_tokens_by_tenant: Counter[str] = Counter()

    @property
    def num_waiting(self) -> int:
        return len(self.queue) + len(self.groups)

    def waiting(self) -> Iterator[Request]:
        yield from self.queue
        yield from self.groups

    def enter(self, request: Request) -> None:
        self.by_id[request.request_id] = request
        self._count_waiting(request)
        if not self.groups.join(request):
            self.queue.push(request)

    def start(self, request: Request) -> None:
        self.queue.remove(request)
        self._stop_waiting(request)
        request.state = RequestState.RUNNING
        self.running[request.arrival] = request
        if request.class_rank == BULK:
            self.running_bulk[request.arrival] = request
        self.queue.start(request)

    def preempt(self, request: Request) -> None:
        """Back to the queue, with all its blocks so far: whoever needs some takes them from its tail."""
        self._stop_running(request)
        request.state = RequestState.WAITING
        self._count_waiting(request)
        self.queue.push(request)
        self.holders[request.arrival] = request

    def call_followers(self, leader: Request) -> None:
        """Into the queue, once the prompt is computed that they wait for."""
        for follower in self.groups.take_ready(leader):
            self.queue.push(follower)

    def leave(self, request: Request, reason: FinishReason, code: Code | None) -> None:
        """The end, from whichever place it is in."""
        if request.state is RequestState.RUNNING:
            self._stop_running(request)
        else:
            if not self.groups.is_following(request):
                self.queue.remove(request)
            self._stop_waiting(request)
        del self.by_id[request.request_id]
        request.state = RequestState.FINISHED
        request.finish_reason = reason
        request.code = code
        if request.group_id:
            successor = self.groups.leave(request)
            if successor is not None:
                self.queue.push(successor)

    def _stop_running(self, request: Request) -> None:
        del self.running[request.arrival]
        self.running_bulk.pop(request.arrival, None)
        self.queue.stop(request)

    def _count_waiting(self, request: Request) -> None:
        request.queued_tokens = request.num_remaining
        self.num_waiting_by_tenant[request.tenant_id] += 1
        self.waiting_tokens_by_tenant[request.tenant_id] += request.queued_tokens

    def _stop_waiting(self, request: Request) -> None:
        self.holders.pop(request.arrival, None)
        tenant = request.tenant_id
        self.num_waiting_by_tenant[tenant] -= 1
        self.waiting_tokens_by_tenant[tenant] -= request.queued_tokens
        if not self.num_waiting_by_tenant[tenant]:
            del self.num_waiting_by_tenant[tenant], self.waiting_tokens_by_tenant[tenant]
