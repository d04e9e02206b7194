"""Who goes next and who gives way: the interface a queueing policy fills in, one file a policy."""

from collections.abc import Collection, Iterator
from typing import Protocol

from .request import Request

Rank = tuple[int, ...]


class QueuePolicy(Protocol):
    """Holds the waiting requests, and is told what the others are given."""

    def push(self, request: Request) -> None:
        """A new request, or a preempted one that comes back."""

    def head(self, but: Collection[str] = ()) -> Request | None:
        """Who is admitted next, tenants in `but` passed over. Asked twice with nothing changed, it answers
        the same."""

    def remove(self, request: Request) -> None:
        """It leaves the queue, to run or because it has ended."""

    def start(self, request: Request) -> None:
        """It runs from now on, with the first `num_computed` of its known tokens computed already."""

    def stop(self, request: Request) -> None:
        """It runs no more: preempted or ended."""

    def note_outputs(self, num_tokens: int) -> None:
        """A step has ended, and those that run have so many more output tokens, all together."""

    def rank(self, request: Request) -> Rank:
        """Lower is more deserving. Blocks are taken from the highest rank, and never for a higher one."""

    def gives_way(self, runner: Request, waiting: Request) -> bool:
        """Whether `runner` stops at once, for its place and for its blocks, when `waiting` is the head."""

    def place_givers(self, waiting: Request) -> list[Request]:
        """Who else leaves its place alone to the head of the queue: it may keep its blocks, and goes on when
        there is a place again."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Request]: ...
