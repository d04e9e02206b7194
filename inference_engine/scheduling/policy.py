"""Who goes next and who gives way: the interface a queueing policy fills in, one file a policy."""

from collections.abc import Iterator
from typing import Protocol

from .request import Request

Rank = tuple[int, ...]


class QueuePolicy(Protocol):
    """Holds the waiting requests. `head` is stable: asked twice with nothing changed, it answers the same."""

    def push(self, request: Request) -> None:
        """A new request, or a preempted one that comes back."""

    def head(self) -> Request | None:
        """Who is admitted next."""

    def remove(self, request: Request) -> None:
        """It was admitted, aborted or finished."""

    def rank(self, request: Request) -> Rank:
        """Lower is more deserving. Blocks are taken from the highest rank, and never for a higher one."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Request]: ...
