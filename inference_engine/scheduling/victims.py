"""Who among those that run may be stopped, for whom and for what. Nobody twice in one plan."""

from .request import Request
from .roster import Roster


class Victims:
    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self.moved: set[int] = set()
        """Arrival numbers of those admitted or stopped in this plan."""

    def for_growth(self, claimant: Request, tenant_id: str | None) -> list[Request]:
        """Less deserving than a running request that needs a block; of this tenant only, if one is named."""
        rank = self._roster.queue.rank
        own = rank(claimant)
        return [
            runner
            for runner in self._roster.running.values()
            if (tenant_id is None or runner.tenant_id == tenant_id)
            and self._can_stop(runner, claimant)
            and rank(runner) > own
        ]

    def for_room(self, waiting: Request) -> list[Request]:
        """Bulk that gives way to the head of the queue."""
        gives_way = self._roster.queue.gives_way
        running = self._roster.running_bulk.values()
        return [r for r in running if gives_way(r, waiting) and self._can_stop(r, waiting)]

    def for_place(self, waiting: Request) -> Request | None:
        """The least deserving of those that leave their place to the head of the queue."""
        givers = self.for_room(waiting)
        if not givers:
            givers = [r for r in self._roster.queue.place_givers(waiting) if self._can_stop(r, waiting)]
        return max(givers, key=self._roster.queue.rank, default=None)

    def _can_stop(self, runner: Request, claimant: Request) -> bool:
        return runner.arrival not in self.moved and runner.can_be_preempted_for(claimant)
