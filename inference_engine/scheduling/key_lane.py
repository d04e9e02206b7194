"""One tenant's waiting requests of one class: by key, the least served first, then by arrival."""

from collections import defaultdict
from collections.abc import Iterator

from .lanes import Entry, Lane, Lanes, Order
from .request import Request
from .service_counters import Account


class KeyLane:
    """Lives while something waits in it, and so do its accounts: what keys had before is forgiven."""

    __slots__ = ("_accounts", "_lanes", "entry", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.entry: Entry | None = None
        self._accounts: defaultdict[str, Account] = defaultdict(Account)
        self._lanes = Lanes(of_key, self._order_of)

    def push(self, request: Request) -> None:
        request.key_account = self._accounts[request.key_id]
        lowest = self._lanes.lowest_order()
        if lowest is not None and request.key_id not in self._lanes:
            request.key_account.lift(lowest[0])
        self._lanes.push(request)

    def head(self) -> Request | None:
        return self._lanes.head()

    def remove(self, request: Request) -> None:
        self._lanes.remove(request)

    def __len__(self) -> int:
        return len(self._lanes)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._lanes)

    def _order_of(self, lane: Lane) -> Order:
        return (self._accounts[lane.name].served,)


def of_key(request: Request) -> str:
    return request.key_id
