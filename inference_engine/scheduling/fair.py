"""Fair shares among tenants, inside the batching loop: virtual token counters (VTC, Sheng et al., OSDI'24).

Each tenant has one counter of service: prompt tokens when a request is first admitted (those cached or forked
at CACHED_TOKEN_COST), OUTPUT_TOKEN_COST for each output token as it comes, all divided by the tenant's
weight; what a preemption makes it compute again is never charged. In each class the tenant with the lowest
counter is next, among its keys the least served one, then the oldest request. A tenant that comes back to a
class with nothing waiting there is lifted to the lowest counter of those that do wait, so it brings no credit
from its absence.

The bound. Let P be the largest charge of one prompt, O that of all the output of one request, and R the
places of the running set, all at weight 1. Of two tenants of equal weight w that wait in the same class from
one moment to another, and ask for nothing in other classes, neither held back by a limit of its own, the
counters then differ by at most

    U = (P + R x O) / w

For as long as f's counter is above g's, f is not admitted; it was not above when f was last admitted; since
then f was charged that one prompt and the outputs of those of its requests that run, at most R. So services
over the whole time differ by at most 2U (a gap of U one way in the beginning and the other way in the end).
Preemption and resumption go through the same queue and charge nothing; bulk that yields only lowers what its
tenant is charged.

A tenant with nothing running doesn't wait for a place of one that has several and was served as much: the
newest of those lets it pass and keeps its blocks meanwhile.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator

from .class_ladder import ClassLadder, bulk_gives_way
from .key_lane import KeyLane
from .lanes import Lane, Lanes, Order, of_tenant
from .policy import Rank
from .request import Request
from .service_counters import (
    CACHED_TOKEN_COST,
    OUTPUT_TOKEN_COST,
    PROMPT_TOKEN_COST,
    Account,
)

RANK_GRAIN = 256.0
"""Service that makes one tenant less deserving than another when blocks are short: less is no difference, so
that two with nearly equal counters don't take each other's blocks in turns."""


class TenantAccount(Account):
    __slots__ = ("charged_at", "running")

    def __init__(self) -> None:
        super().__init__()
        self.charged_at = 0
        """Number of the step up to which outputs are charged."""
        self.running: dict[int, Request] = {}
        """By arrival number."""


class FairShares:
    def __init__(self, ageing_tokens: int) -> None:
        self.accounts: defaultdict[str, TenantAccount] = defaultdict(TenantAccount)
        """By tenant."""
        self._ladder = ClassLadder(lambda: Lanes(of_tenant, self._order_of, KeyLane), ageing_tokens)
        self._last_left = [0.0 for _ in self._ladder.rungs]
        """By class: the counter of the tenant that last left it empty."""
        self._with_several: dict[str, TenantAccount] = {}
        """Tenants of which more than one runs, in an order that doesn't depend on hashes."""
        self._num_steps = 0

    def push(self, request: Request) -> None:
        rung = self._ladder.rungs[request.class_rank]
        request.account = self.accounts[request.tenant_id]
        self.served(request.tenant_id)
        if not request.num_charged:
            request.num_charged = request.num_known
        if request.tenant_id not in rung:
            lowest = rung.lowest_order()
            request.account.lift(lowest[0] if lowest else self._last_left[request.class_rank])
        self._ladder.push(request)

    def head(self, but: Collection[str] = ()) -> Request | None:
        return self._ladder.head(but)

    def remove(self, request: Request) -> None:
        request.charge_outputs()
        self._ladder.remove(request)
        rank = request.class_rank
        if not len(self._ladder.rungs[rank]):
            self._last_left[rank] = max(self._last_left[rank], self.served(request.tenant_id))

    def start(self, request: Request) -> None:
        self._ladder.start(request)
        account = self.accounts[request.tenant_id]
        account.running[request.arrival] = request
        if len(account.running) > 1:
            self._with_several[request.tenant_id] = account
        if not request.num_preemptions:
            num_new = request.num_known - request.num_computed
            cost = num_new * PROMPT_TOKEN_COST + request.num_computed * CACHED_TOKEN_COST
            self._ladder.clock += cost
            request.charge(cost)

    def stop(self, request: Request) -> None:
        request.charge_outputs()
        running = self.accounts[request.tenant_id].running
        del running[request.arrival]
        if len(running) == 1:
            del self._with_several[request.tenant_id]

    def note_outputs(self, num_tokens: int) -> None:
        """A step has ended: counters are behind by its output, until they are looked at."""
        self._ladder.clock += OUTPUT_TOKEN_COST * num_tokens
        self._num_steps += 1

    def served(self, tenant: str) -> float:
        """Its counter, up to date."""
        return self._served(self.accounts[tenant])

    def _served(self, account: TenantAccount) -> float:
        """What its running requests put out is charged here, when somebody asks: far fewer tenants are asked
        about in a step than requests run in it."""
        if account.charged_at != self._num_steps:
            account.charged_at = self._num_steps
            for request in account.running.values():
                request.charge_outputs()
        return account.served

    def rank(self, request: Request) -> Rank:
        return request.class_rank, int(self.served(request.tenant_id) / RANK_GRAIN), request.arrival

    def gives_way(self, runner: Request, waiting: Request) -> bool:
        return bulk_gives_way(runner, waiting)

    def place_givers(self, waiting: Request) -> list[Request]:
        """Of the most served tenant that has several running, if `waiting` is of one that has none."""
        account = self.accounts[waiting.tenant_id]
        if account.running or not self._with_several:
            return []
        most_served = max(self._with_several.values(), key=self._served)
        if self._served(most_served) < self._served(account):
            return []
        return [r for r in most_served.running.values() if r.class_rank >= waiting.class_rank]

    def __len__(self) -> int:
        return len(self._ladder)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._ladder)

    def _order_of(self, lane: Lane) -> Order:
        """Among equally served ones, those with nothing running first. (That part of an order may fall
        without a push, which the lanes may see late: it only ever decides between equals.)"""
        account = self.accounts[lane.name]
        return self._served(account), bool(account.running)
