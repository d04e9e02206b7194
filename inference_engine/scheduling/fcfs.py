"""First come, first served. A preempted request keeps the place of its arrival."""

from collections.abc import Collection, Iterator

from .lanes import Lanes, by_arrival, of_tenant
from .policy import Rank
from .request import Request


class FirstComeFirstServed:
    def __init__(self) -> None:
        self._lanes = Lanes(of_tenant, by_arrival)

    def push(self, request: Request) -> None:
        self._lanes.push(request)

    def head(self, but: Collection[str] = ()) -> Request | None:
        return self._lanes.head(but)

    def remove(self, request: Request) -> None:
        self._lanes.remove(request)

    def start(self, request: Request) -> None:
        """Nothing is charged."""

    def stop(self, request: Request) -> None:
        """Nothing was noted."""

    def note_outputs(self, num_tokens: int) -> None:
        """Nothing is charged."""

    def rank(self, request: Request) -> Rank:
        return request.class_rank, request.arrival

    def gives_way(self, runner: Request, waiting: Request) -> bool:
        return False

    def place_givers(self, waiting: Request) -> list[Request]:
        return []

    def __len__(self) -> int:
        return len(self._lanes)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._lanes)
