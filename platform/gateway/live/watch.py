"""Looks after the open sockets of one process, twice a second: whose key was withdrawn, who is old or stuck.

What runs on a socket passes the gate and is renewed like any request; this is for the socket itself, which
may stay open with nothing running on it.
"""

import asyncio
import time
from collections import Counter
from typing import Protocol

import structlog
from django.conf import settings
from django.utils import timezone

from admission.freshness import confirmed
from api_keys.authentication import is_current, reload_principal
from api_keys.principal import Principal
from fleet.cancelling import cancelled
from gateway.callers import check_standing
from gateway.live.closing import CloseCode
from gateway.live.metrics import OPEN_SOCKETS
from inference_engine.contract.codes import Code
from quotas.epochs import read_epochs
from tenants.errors import Denied

log = structlog.get_logger("gateway")

INTERVAL_S = 0.5
LONGEST_LIFE_S = 60 * 60.0
LONGEST_BLOCK_S = 30.0
RETRY_AFTER_S = 5.0


class WatchedSocket(Protocol):
    """What the watch must know of a socket, and may do to it."""

    principal: Principal

    @property
    def address(self) -> str: ...

    @property
    def opened_at(self) -> float:
        """Monotonic seconds."""

    @property
    def sending_since(self) -> float | None:
        """When the oldest send that is still blocked began."""

    async def close(self, code: CloseCode, reason: Denied) -> None: ...


class SocketWatch:
    """Belongs to one event loop."""

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        self._sockets: set[WatchedSocket] = set()
        self._of_tenant: Counter[str] = Counter()
        self._interval_s = interval_s
        self._closing: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None

    def check_room(self, principal: Principal) -> None:
        """Half of the sockets that fit are for any one tenant. Raises Denied: QUEUE_FULL."""
        most = settings.OCTAVO_MAX_SOCKETS
        if len(self._sockets) >= most or self._of_tenant[principal.tenant_id] >= max(1, most // 2):
            raise Denied(Code.QUEUE_FULL, "Too many sockets are open.", retry_after_s=RETRY_AFTER_S)

    def add(self, socket: WatchedSocket) -> None:
        self._sockets.add(socket)
        self._of_tenant[socket.principal.tenant_id] += 1
        OPEN_SOCKETS.inc()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="socket-watch")

    def drop(self, socket: WatchedSocket) -> None:
        self._sockets.discard(socket)
        self._of_tenant[socket.principal.tenant_id] -= 1
        self._of_tenant += Counter()  # forgets those with none
        OPEN_SOCKETS.dec()

    async def stop(self) -> None:
        for task in (self._task, *self._closing):
            if task is not None:
                await cancelled(task)

    async def _run(self) -> None:
        while self._sockets:
            await asyncio.sleep(self._interval_s)
            try:
                await self._look()
            except Exception as error:  # an outage, or worse: the sockets must stay watched
                log.warning("socket_watch_failed", error=repr(error), num_sockets=len(self._sockets))

    async def _look(self) -> None:
        self._close_old_and_stuck(time.monotonic())
        sockets = list(self._sockets)
        epochs = await read_epochs({socket.principal.tenant_id for socket in sockets})
        present: dict[tuple[str, bytes | None], Principal | Denied] = {}
        for socket in sockets:
            if not _may_be_out_of_date(socket.principal, epochs[socket.principal.tenant_id]):
                continue
            presented = socket.principal.key_id, socket.principal.proof
            if presented not in present:
                present[presented] = await _confirmed(socket.principal)
            self._heed(socket, present[presented])

    def _heed(self, socket: WatchedSocket, present: Principal | Denied) -> None:
        try:
            if isinstance(present, Denied):
                raise present
            check_standing(present, socket.address)
            socket.principal = present
        except Denied as denied:
            if denied.code is not Code.STORE_UNAVAILABLE:  # nobody can tell now: asked again next time
                self._close(socket, CloseCode.ACCESS_WITHDRAWN, denied)

    def _close_old_and_stuck(self, now: float) -> None:
        for socket in list(self._sockets):
            if now - socket.opened_at > LONGEST_LIFE_S:
                message = f"A socket lives for {LONGEST_LIFE_S / 60:g} minutes; open another."
                self._close(socket, CloseCode.NORMAL, Denied(Code.DEADLINE_EXCEEDED, message))
            elif socket.sending_since is not None and now - socket.sending_since > LONGEST_BLOCK_S:
                message = f"Nothing was read for {LONGEST_BLOCK_S:g} seconds."
                self._close(socket, CloseCode.SLOW_READER, Denied(Code.SLOW_READER, message))

    def _close(self, socket: WatchedSocket, code: CloseCode, reason: Denied) -> None:
        task = asyncio.create_task(socket.close(code, reason))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _may_be_out_of_date(principal: Principal, epoch: int | None) -> bool:
    is_over = principal.expires_at is not None and principal.expires_at <= timezone.now()
    return is_over or epoch != principal.policy_epoch or not is_current(principal)


async def _confirmed(principal: Principal) -> Principal | Denied:
    """What its key may do now; an expired one is looked up as well."""
    try:
        if principal.expires_at is not None and principal.expires_at <= timezone.now():
            return await reload_principal(principal)
        return await confirmed(principal)
    except Denied as denied:
        return denied
