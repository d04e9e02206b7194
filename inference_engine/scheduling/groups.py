"""n > 1: the requests of one group have one prompt. The first, the leader, computes it; the others follow
beside the queue until it is there, then queue like any other and fork from the leader's page table when
admitted.

A leader that ends before that leaves its part to the follower that came next.
"""

from collections.abc import Iterator

from .request import Request

GroupKey = tuple[str, str]
"""Tenant id and group id."""


class Groups:
    def __init__(self) -> None:
        self._leaders: dict[GroupKey, Request] = {}
        self._followers: dict[int, list[Request]] = {}
        """Arrival number of a leader whose prompt isn't computed -> those that wait for it."""
        self._num_followers = 0

    def join(self, request: Request) -> bool:
        """Whether `request` must wait for a leader. Without one of the same prompt it is on its own."""
        if not request.group_id:
            return False
        leader = self._leaders.setdefault(key_of(request), request)
        if leader is request or leader.prompt_ids != request.prompt_ids:
            return False
        request.leader = leader
        if leader.num_computed >= leader.num_prompt:
            return False
        self._followers.setdefault(leader.arrival, []).append(request)
        self._num_followers += 1
        return True

    def take_ready(self, leader: Request) -> list[Request]:
        """Those that waited for this leader, if its prompt is computed by now."""
        if leader.arrival not in self._followers or leader.num_computed < leader.num_prompt:
            return []
        ready = self._followers.pop(leader.arrival)
        self._num_followers -= len(ready)
        return ready

    def leave(self, request: Request) -> Request | None:
        """`request` has ended. Returns the follower that has to compute the prompt instead, if any."""
        if request.leader is not None:
            self._drop_follower(request, request.leader)
        elif self._leaders.get(key_of(request)) is request:
            return self._succeed(request)
        return None

    def is_following(self, request: Request) -> bool:
        """It waits beside the queue."""
        leader = request.leader
        return leader is not None and request in self._followers.get(leader.arrival, ())

    def __len__(self) -> int:
        return self._num_followers

    def __iter__(self) -> Iterator[Request]:
        for followers in self._followers.values():
            yield from followers

    def _drop_follower(self, request: Request, leader: Request) -> None:
        followers = self._followers.get(leader.arrival, [])
        if request in followers:
            followers.remove(request)
            self._num_followers -= 1
            if not followers:
                del self._followers[leader.arrival]

    def _succeed(self, leader: Request) -> Request | None:
        del self._leaders[key_of(leader)]
        followers = self._followers.pop(leader.arrival, [])
        if not followers:
            return None
        first, *others = followers
        first.leader = None
        self._leaders[key_of(first)] = first
        self._num_followers -= 1
        if others:
            self._followers[first.arrival] = others
        for other in others:
            other.leader = first
        return first


def key_of(request: Request) -> GroupKey:
    return request.tenant_id, request.group_id
