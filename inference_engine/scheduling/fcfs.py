"""First come, first served. A preempted request keeps the place of its arrival."""

import heapq
from collections.abc import Iterator

from .policy import Rank
from .request import Request


class FirstComeFirstServed:
    def __init__(self) -> None:
        self._waiting: dict[int, Request] = {}
        self._heap: list[int] = []
        """Arrival numbers; those no longer in `_waiting` are skipped when they surface."""

    def push(self, request: Request) -> None:
        self._waiting[request.arrival] = request
        heapq.heappush(self._heap, request.arrival)

    def head(self) -> Request | None:
        while self._heap:
            request = self._waiting.get(self._heap[0])
            if request is not None:
                return request
            heapq.heappop(self._heap)
        return None

    def remove(self, request: Request) -> None:
        del self._waiting[request.arrival]

    def rank(self, request: Request) -> Rank:
        return request.class_rank, request.arrival

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._waiting.values())
