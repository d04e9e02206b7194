"""Service classes, the more urgent first, softened by ageing so that none starves.

    key = class rank x W + token clock at arrival

The token clock is all the service the engine has given, in charged tokens, and the class whose head has the
lowest key goes first: a request is overtaken by one of the next more urgent class only while less than W
tokens older.

Ageing must not turn into its opposite, though: behind a deep backlog of old bulk every fresh chat would wait.
So whenever age alone has let a class go first, the class begins to age anew. A class below others then gets
one admission for each W tokens and class above it, and an urgent request is held up by one such admission.
"""

import math
from collections.abc import Callable, Collection, Iterator

from .lanes import Lanes
from .request import BULK, CLASS_RANK, Request


class ClassLadder:
    def __init__(self, make_lanes: Callable[[], Lanes], ageing_tokens: int) -> None:
        """`ageing_tokens`: W. `make_lanes`: what a class waits in, by tenant."""
        self.rungs = [make_lanes() for _ in CLASS_RANK]
        self.clock = 0.0
        self._window = ageing_tokens
        self._aged_at = [0.0 for _ in CLASS_RANK]
        """By class: when age alone last let it go first."""

    def push(self, request: Request) -> None:
        if request.queued_clock is None:
            request.queued_clock = self.clock
        self.rungs[request.class_rank].push(request)

    def remove(self, request: Request) -> None:
        self.rungs[request.class_rank].remove(request)

    def head(self, but: Collection[str] = ()) -> Request | None:
        first, lowest = None, math.inf
        for rank, rung in enumerate(self.rungs):
            if not len(rung) or self._lowest_key(rank) >= lowest:
                continue
            head = rung.head(but)
            if head is not None and self._key(head) < lowest:
                first, lowest = head, self._key(head)
        return first

    def start(self, request: Request) -> None:
        """`request` was admitted, and has been removed."""
        request.is_let_in_by_age = any(len(rung) for rung in self.rungs[: request.class_rank])
        if request.is_let_in_by_age:
            self._aged_at[request.class_rank] = self.clock

    def __len__(self) -> int:
        interactive, standard, bulk = self.rungs
        return len(interactive) + len(standard) + len(bulk)

    def __iter__(self) -> Iterator[Request]:
        for rung in self.rungs:
            yield from rung

    def _key(self, request: Request) -> float:
        rank, arrived = request.class_rank, request.queued_clock or 0.0
        return rank * self._window + max(arrived, self._aged_at[rank])

    def _lowest_key(self, rank: int) -> float:
        """That anything in the class could have: a class that has aged lately isn't looked at."""
        return rank * self._window + self._aged_at[rank]


def bulk_gives_way(runner: Request, waiting: Request) -> bool:
    """Bulk stops for whatever is more urgent, unless it was its age that let it in."""
    return waiting.class_rank < runner.class_rank == BULK and not runner.is_let_in_by_age
