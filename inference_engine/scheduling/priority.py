"""The most urgent class first, softened by ageing; within a class first come, first served."""

from collections.abc import Collection, Iterator

from .class_ladder import ClassLadder, bulk_gives_way
from .lanes import Lanes, by_arrival, of_tenant
from .policy import Rank
from .request import Request
from .service_counters import OUTPUT_TOKEN_COST


class PriorityByClass:
    def __init__(self, ageing_tokens: int) -> None:
        self._ladder = ClassLadder(lambda: Lanes(of_tenant, by_arrival), ageing_tokens)

    def push(self, request: Request) -> None:
        self._ladder.push(request)

    def head(self, but: Collection[str] = ()) -> Request | None:
        return self._ladder.head(but)

    def remove(self, request: Request) -> None:
        self._ladder.remove(request)

    def start(self, request: Request) -> None:
        self._ladder.start(request)
        if not request.num_preemptions:
            self._ladder.clock += request.num_known - request.num_computed

    def stop(self, request: Request) -> None:
        """Nothing was noted."""

    def note_outputs(self, num_tokens: int) -> None:
        self._ladder.clock += OUTPUT_TOKEN_COST * num_tokens

    def rank(self, request: Request) -> Rank:
        return request.class_rank, request.arrival

    def gives_way(self, runner: Request, waiting: Request) -> bool:
        return bulk_gives_way(runner, waiting)

    def place_givers(self, waiting: Request) -> list[Request]:
        return []

    def __len__(self) -> int:
        return len(self._ladder)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._ladder)
