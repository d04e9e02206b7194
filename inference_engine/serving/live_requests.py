"""What the loop remembers of each accepted request beside the scheduler's state: whose, and since when."""

import heapq
from collections import OrderedDict, deque
from dataclasses import dataclass

from inference_engine.contract.events import Timeline, Usage
from inference_engine.contract.requests import Generate
from inference_engine.scheduling.request import Request

from .gathering import Gathering
from .orphans import OrphanUsage

REMEMBERED_ENDINGS = 16_384
UNHEARD_S = 10.0
"""After so long a gateway has settled what it was told had ended, or never will."""


@dataclass(slots=True, eq=False)
class LiveRequest:
    """Times are the loop's monotonic seconds."""

    request: Request
    session_id: int
    reservation_key: str
    received_at: float
    gathering: Gathering | None = None
    """Where its Deltas are to have several tokens."""
    has_deadline: bool = False
    started_at: float | None = None
    first_token_at: float | None = None

    @property
    def key(self) -> tuple[str, int]:
        return self.request.request_id, self.request.attempt

    def usage(self) -> Usage:
        return Usage(
            prompt_tokens=len(self.request.prompt_ids),
            cached_tokens=self.request.cached_tokens,
            output_tokens=len(self.request.output_ids),
        )

    def orphan(self) -> OrphanUsage:
        """Its final usage, once nobody is left to hear it."""
        request_id, attempt = self.key
        return OrphanUsage(self.reservation_key, request_id, attempt, self.request.group_id, self.usage())

    def timeline(self, now: float) -> Timeline:
        first = self.first_token_at
        return Timeline(
            queued_ms=self._milliseconds(now if self.started_at is None else self.started_at),
            first_token_ms=None if first is None else self._milliseconds(first),
            finished_ms=self._milliseconds(now),
            num_chunks=self.request.num_chunks,
            num_preemptions=self.request.num_preemptions,
            num_recomputed_tokens=self.request.num_recomputed_tokens,
        )

    def _milliseconds(self, at: float) -> float:
        return round((at - self.received_at) * 1000, 3)


class LiveRequests:
    """Owned by the loop's thread. One attempt of a request id is live at a time."""

    def __init__(self, remembered: int = REMEMBERED_ENDINGS) -> None:
        self._by_id: dict[str, LiveRequest] = {}
        self._by_session: dict[int, dict[str, LiveRequest]] = {}
        self._deadlines: list[tuple[float, str, int]] = []
        """A heap, with some of requests that have ended: never more than there are others."""
        self._num_with_deadline = 0
        self._ended: OrderedDict[str, int] = OrderedDict()
        self._remembered = remembered
        self._lately: deque[tuple[float, int, OrphanUsage]] = deque()
        """(when it ended, its session, its usage) of those with a reservation."""

    def __len__(self) -> int:
        return len(self._by_id)

    def add(self, live: LiveRequest, generate: Generate) -> None:
        self._by_id[generate.request_id] = live
        self._by_session.setdefault(live.session_id, {})[generate.request_id] = live
        if generate.deadline_ms is not None:
            at = live.received_at + generate.deadline_ms / 1000
            heapq.heappush(self._deadlines, (at, generate.request_id, generate.attempt))
            live.has_deadline = True
            self._num_with_deadline += 1

    def get(self, request_id: str) -> LiveRequest | None:
        return self._by_id.get(request_id)

    def find(self, request_id: str, attempt: int) -> LiveRequest | None:
        live = self._by_id.get(request_id)
        return live if live is not None and live.request.attempt == attempt else None

    def has_ended(self, request_id: str, attempt: int) -> bool:
        """This attempt, or a newer one, has come and gone."""
        return self._ended.get(request_id, -1) >= attempt

    def remove(self, live: LiveRequest) -> None:
        request_id, attempt = live.key
        del self._by_id[request_id]
        of_session = self._by_session[live.session_id]
        del of_session[request_id]
        if not of_session:
            del self._by_session[live.session_id]
        self._num_with_deadline -= live.has_deadline
        if len(self._deadlines) > 2 * self._num_with_deadline:
            self._deadlines = [each for each in self._deadlines if self.find(*each[1:]) is not None]
            heapq.heapify(self._deadlines)
        self._ended[request_id] = attempt
        self._ended.move_to_end(request_id)
        if len(self._ended) > self._remembered:
            self._ended.popitem(last=False)

    def of_session(self, session_id: int) -> list[LiveRequest]:
        return list(self._by_session.get(session_id, {}).values())

    def note_end(self, live: LiveRequest, now: float) -> None:
        """Its last message is under way."""
        if live.reservation_key:
            self._lately.append((now, live.session_id, live.orphan()))
        self._forget_heard(now)

    def ended_lately(self, session_id: int, now: float) -> list[OrphanUsage]:
        """Of those whose gateway may have died before it could settle them."""
        self._forget_heard(now)
        return [usage for _, session, usage in self._lately if session == session_id]

    def _forget_heard(self, now: float) -> None:
        while self._lately and self._lately[0][0] < now - UNHEARD_S:
            self._lately.popleft()

    def pop_expired(self, now: float) -> list[LiveRequest]:
        expired = []
        while self._deadlines and self._deadlines[0][0] <= now:
            _, request_id, attempt = heapq.heappop(self._deadlines)
            live = self.find(request_id, attempt)
            if live is not None:
                expired.append(live)
        return expired
