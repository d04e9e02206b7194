"""Settling in the background: the handler that ended, or was cancelled, never waits for it.

Redis may answer up to two seconds before its file is safe, so what was settled lately, or is about to be, is
kept and sent again when Redis comes back as a new run; the ledger takes each request id once.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import structlog
from redis.exceptions import RedisError

from quotas.leases import lease_keeper
from quotas.reservation_keys import ReservationKeys
from quotas.reservations import Reservation, release, settle
from quotas.store import on_new_run, run_number
from tenants.errors import store_unavailable

log = structlog.get_logger(__name__)

KEPT_S = 10.0
RECOVERY_PATIENCE_S = 2.0
FIRST_WAIT_S, LONGEST_WAIT_S = 0.1, 1.0
GIVE_UP_AFTER_S = 600.0
"""By then the lease has long expired and the sweeper has settled from the last renewal."""


@dataclass(frozen=True, slots=True)
class Settled:
    at: float
    keys: ReservationKeys
    row: Mapping[str, str]


class Settler:
    """The settlements under way of one event loop, and the recent ones."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._under_way: dict[str, Settled] = {}
        self._recent: deque[Settled] = deque()
        self._recovery: asyncio.Task[None] | None = None

    def settle(self, reservation: Reservation, row: Mapping[str, str]) -> "asyncio.Task[None]":
        """In the background; the task is there to be watched, not to be awaited by a handler."""
        keys = reservation.keys
        self._under_way[keys.request_id] = Settled(time.monotonic(), keys, row)
        return self._start(self._settle(keys, row))

    def release(self, keys: ReservationKeys) -> None:
        self._start(_until_done(keys.request_id, lambda: release(keys)))

    async def finish(self, timeout_s: float) -> None:
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=timeout_s)
            if late:
                log.error("settlements_left_to_the_sweeper", num_requests=len(late))

    def _start(self, work: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _settle(self, keys: ReservationKeys, row: Mapping[str, str]) -> None:
        run_before = run_number()
        await _until_done(keys.request_id, lambda: settle(keys, row))
        del self._under_way[keys.request_id]
        self._keep(Settled(time.monotonic(), keys, row))
        if run_before != run_number():
            # The run changed while this was sent: the settlement may be among what was lost.
            await _until_done(keys.request_id, lambda: settle(keys, row))

    def _keep(self, settled: Settled) -> None:
        self._recent.append(settled)
        while self._recent[0].at < settled.at - KEPT_S:
            self._recent.popleft()

    def recover(self) -> None:
        """Tell a new run of Redis what the one before may have taken with it."""
        self._recovery = self._start(self._recover())

    async def recovered(self) -> None:
        """Wait until it knows: what it forgot must not make room for others. Raises STORE_UNAVAILABLE."""
        if self._recovery is None or self._recovery.done():
            return
        await asyncio.wait({self._recovery}, timeout=RECOVERY_PATIENCE_S)
        if not self._recovery.done():
            raise store_unavailable()

    async def _recover(self) -> None:
        since = time.monotonic() - KEPT_S
        known = [settled for settled in self._recent if settled.at >= since]
        await asyncio.gather(*(_again(settled) for settled in (*self._under_way.values(), *known)))
        await _until_done("all leases", lease_keeper().renew)


async def _again(settled: Settled) -> None:
    await _until_done(settled.keys.request_id, lambda: settle(settled.keys, settled.row))


async def _until_done(request_id: str, attempt: Callable[[], Awaitable[object]]) -> None:
    give_up_at, wait_s = time.monotonic() + GIVE_UP_AFTER_S, FIRST_WAIT_S
    while True:
        try:
            await attempt()
            return
        except (RedisError, OSError) as error:
            if time.monotonic() > give_up_at:
                log.error("settlement_given_up", request_id=request_id, error=str(error))
                return
            log.warning("settlement_retried", request_id=request_id, error=str(error))
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, LONGEST_WAIT_S)


_settlers: WeakKeyDictionary[asyncio.AbstractEventLoop, Settler] = WeakKeyDictionary()


def settler() -> Settler:
    """This event loop's settler."""
    loop = asyncio.get_running_loop()
    found = _settlers.get(loop)
    if found is None:
        found = _settlers[loop] = Settler()
    return found


async def finish_settlements(timeout_s: float = 5.0) -> None:
    """Wait for the settlements under way, at the end of a process."""
    await settler().finish(timeout_s)


def _recover_all() -> None:
    """The noticing loop's at once, before anything else of it can be admitted."""
    settler().recover()
    for loop, each in list(_settlers.items()):
        if loop is not asyncio.get_running_loop() and not loop.is_closed():
            loop.call_soon_threadsafe(each.recover)


on_new_run(_recover_all)
