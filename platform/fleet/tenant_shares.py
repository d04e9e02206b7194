"""Tells every engine the tenants' shares: all of them when a session opens, and those that change, at once.

A request carries its tenant's weight and class itself; this is for what is already waiting or running, and
for queue limits, which only an engine can hold to.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from weakref import WeakSet

import structlog
from django.db import DatabaseError, InterfaceError, connections
from redis.asyncio import Redis
from redis.exceptions import RedisError

from fleet.cancelling import cancelled
from fleet.session import EngineSession
from inference_engine.contract.requests import SetTenantShares, TenantShare
from quotas.selectors import queue_limits
from tenants.policy_epochs import POLICY_VERSION_KEY
from tenants.selectors import weights

log = structlog.get_logger("fleet")

POLL_INTERVAL_S = 0.25
READ_AGAIN_S = 5.0
"""Even without a hint: it may have been lost."""
BATCH = 10_000

Shares = dict[str, TenantShare]


class TenantShares:
    """Belongs to one event loop; reads the database only after a hint that a policy has changed."""

    def __init__(
        self,
        redis: Redis,
        sessions: Callable[[], Iterable[EngineSession]],
        *,
        poll_interval_s: float = POLL_INTERVAL_S,
    ) -> None:
        self._redis = redis
        self._sessions = sessions
        self._poll_interval_s = poll_interval_s
        self._shares: Shares = {}
        self._version: bytes | str | None = None
        self._read_again_at = 0.0
        self._told: WeakSet[EngineSession] = WeakSet()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="tenant-shares")

    async def stop(self) -> None:
        if self._task is not None:
            await cancelled(self._task)

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
            except (RedisError, OSError, DatabaseError, InterfaceError) as error:
                log.warning("tenant_shares_not_read", error=str(error))
            except Exception:
                log.exception("tenant_shares_broke")
            await asyncio.sleep(self._poll_interval_s)

    async def look(self) -> None:
        """Send what changed, and everything to sessions that are new. Raises RedisError, DatabaseError."""
        changed = await self._changed()
        for session in self._sessions():
            is_new = session not in self._told
            self._told.add(session)
            for message in _messages(self._shares if is_new else changed):
                session.send(message)

    async def _changed(self) -> Shares:
        version, now = await self._redis.get(POLICY_VERSION_KEY), time.monotonic()
        if version == self._version and now < self._read_again_at:
            return {}
        before, self._shares = self._shares, await asyncio.to_thread(_read_shares)
        self._version, self._read_again_at = version, now + READ_AGAIN_S
        gone: Shares = dict.fromkeys(before.keys() - self._shares.keys(), TenantShare())
        return gone | {name: share for name, share in self._shares.items() if before.get(name) != share}


def _messages(shares: Shares) -> list[SetTenantShares]:
    names = list(shares)
    batches = [names[start : start + BATCH] for start in range(0, len(names), BATCH)]
    return [SetTenantShares(shares={name: shares[name] for name in batch}) for batch in batches]


def _read_shares() -> Shares:
    """Only those that differ from what an engine assumes anyway. In a thread."""
    try:
        limits = queue_limits()
        read = {
            str(tenant_id): TenantShare(weight=weight, max_queued_requests=limits.get(tenant_id))
            for tenant_id, weight in weights().items()
        }
    finally:
        connections.close_all()
    return {name: share for name, share in read.items() if share != TenantShare()}
