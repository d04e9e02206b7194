"""Who is first among many that wait in lanes: a lazy heap over the lanes, cheap however many requests wait.

A lane's order may rise at any time without a word (a tenant is served, its head leaves); the entry in the
heap is then too low, and is put right once it comes to the top. It may fall only by a push, which makes a new
entry.
"""

import heapq
from collections.abc import Callable, Collection, Iterator, Sized
from itertools import count
from typing import Any, Protocol

from .request import Request

Order = tuple[float, ...]
Entry = tuple[Any, ...]
"""Of a lane in the heap: its order, a serial number, itself. So an order compares with an entry, too."""


class Lane(Protocol):
    name: str
    entry: Entry | None
    """The only one in the heap that counts."""

    def push(self, request: Request) -> None: ...

    def head(self) -> Request | None: ...

    def remove(self, request: Request) -> None: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Request]: ...


def has_too_many(heap: Sized, counting: Sized) -> bool:
    """Most of its entries count no more. Those that never come to the top would stay for ever."""
    return len(heap) > 2 * len(counting)


class ArrivalLane:
    """By arrival. One that comes back finds its old place."""

    __slots__ = ("_heap", "_waiting", "entry", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.entry: Entry | None = None
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
        if has_too_many(self._heap, self._waiting):
            self._heap = sorted(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._waiting.values())


class Lanes:
    """Lanes by name, the one with the lowest order first. A lane exists while something waits in it."""

    __slots__ = ("_heap", "_lanes", "_make_lane", "_name_of", "_num_waiting", "_order_of", "_serial")

    def __init__(
        self,
        name_of: Callable[[Request], str],
        order_of: Callable[[Lane], Order],
        make_lane: Callable[[str], Lane] = ArrivalLane,
    ) -> None:
        self._name_of = name_of
        self._order_of = order_of
        self._make_lane = make_lane
        self._lanes: dict[str, Lane] = {}
        self._heap: list[Entry] = []
        self._serial = count()
        self._num_waiting = 0

    def push(self, request: Request) -> None:
        name = self._name_of(request)
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = self._make_lane(name)
        lane.push(request)
        self._num_waiting += 1
        order = self._order_of(lane)
        if lane.entry is None or order < lane.entry[:-2]:
            heapq.heappush(self._heap, self._new_entry(lane, order))

    def remove(self, request: Request) -> None:
        name = self._name_of(request)
        lane = self._lanes[name]
        lane.remove(request)
        self._num_waiting -= 1
        if not len(lane):
            del self._lanes[name]
            lane.entry = None
            if has_too_many(self._heap, self._lanes):
                self._heap = sorted(entry for entry in self._heap if entry[-1].entry is entry)

    def head(self, but: Collection[str] = ()) -> Request | None:
        """The head of the first lane whose name isn't in `but`."""
        if len(self._lanes) == 1 and not but:
            return next(iter(self._lanes.values())).head()
        aside = []
        lane = self._first()
        while lane is not None and lane.name in but:
            aside.append(heapq.heappop(self._heap))
            lane = self._first()
        for entry in aside:
            heapq.heappush(self._heap, entry)
        return None if lane is None else lane.head()

    def lowest_order(self) -> Order | None:
        lane = self._first()
        return None if lane is None else self._order_of(lane)

    def get(self, name: str) -> Lane | None:
        return self._lanes.get(name)

    def __contains__(self, name: str) -> bool:
        return name in self._lanes

    def __len__(self) -> int:
        return self._num_waiting

    def __iter__(self) -> Iterator[Request]:
        for lane in self._lanes.values():
            yield from lane

    def _first(self) -> Lane | None:
        """The lane whose entry is at the top of the heap, once that entry is true."""
        while self._heap:
            entry = self._heap[0]
            lane: Lane = entry[-1]
            if lane.entry is not entry:
                heapq.heappop(self._heap)
                continue
            order = self._order_of(lane)
            if order <= entry:
                return lane
            heapq.heapreplace(self._heap, self._new_entry(lane, order))
        return None

    def _new_entry(self, lane: Lane, order: Order) -> Entry:
        lane.entry = entry = (*order, next(self._serial), lane)
        return entry


def of_tenant(request: Request) -> str:
    return request.tenant_id


def by_arrival(lane: Lane) -> Order:
    head = lane.head()
    return () if head is None else (head.arrival,)
