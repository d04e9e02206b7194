"""Maintenance: new requests are refused everywhere within a second, running ones go on to their end.

The database knows whether it is on. Redis tells the gateways; a Redis that has forgotten is told again by
whoever asks first, and the ledger writer compares the two now and then.
"""

import asyncio
import time
from weakref import WeakKeyDictionary

import redis
import structlog
from django.db import DatabaseError, InterfaceError, connections, transaction

from admission.models import Maintenance
from audit.services import record
from quotas.store import async_redis, closed_when_unreachable
from tenants.errors import store_unavailable
from tenants.shards import blocking_redis

log = structlog.get_logger(__name__)

KEY = "octavo:maintenance"
"""The message; empty while there is none."""
GOOD_FOR_S = 0.4
"""Then somebody looks again, and for as long once more nobody waits for that."""
SUBJECT = "platform"


def begin_maintenance(message: str, *, actor: str = "system") -> None:
    """`message` is what clients are told."""
    with transaction.atomic():
        Maintenance.objects.update_or_create(pk=Maintenance.THE_ONE, defaults={"message": message})
        record(actor, "maintenance.begin", SUBJECT, {"message": message})
        transaction.on_commit(_publish_or_log)


def end_maintenance(*, actor: str = "system") -> None:
    with transaction.atomic():
        Maintenance.objects.all().delete()
        record(actor, "maintenance.end", SUBJECT)
        transaction.on_commit(_publish_or_log)


def publish_maintenance() -> None:
    """Raises RedisError."""
    blocking_redis().set(KEY, _stored_message())


def _publish_or_log() -> None:
    """The change is committed whatever Redis says; while it is down nothing is admitted anyway."""
    try:
        publish_maintenance()
    except redis.RedisError as error:
        log.error("maintenance_not_published", error=str(error))


def _stored_message() -> str:
    return Maintenance.objects.values_list("message", flat=True).first() or ""


class _Seen:
    """What one event loop knows; requests that need it anew at the same time share one look."""

    def __init__(self) -> None:
        self._message = ""
        self._good_until = 0.0
        self._look: asyncio.Task[None] | None = None

    async def message(self) -> str:
        late_s = time.monotonic() - self._good_until
        if late_s >= 0:
            if self._look is None or self._look.done():
                self._look = asyncio.create_task(self._look_again())
                self._look.add_done_callback(_seen_by_nobody)
            if late_s >= GOOD_FOR_S:
                await asyncio.shield(self._look)
        return self._message

    async def _look_again(self) -> None:
        self._message = await _told_message()
        self._good_until = time.monotonic() + GOOD_FOR_S


def _seen_by_nobody(look: "asyncio.Task[None]") -> None:
    """It may fail with nobody waiting; the next one to ask looks again."""
    if not look.cancelled():
        look.exception()


_seen: "WeakKeyDictionary[asyncio.AbstractEventLoop, _Seen]" = WeakKeyDictionary()


async def maintenance_message() -> str | None:
    """None: there is none. At most 0.8 seconds old. Raises STORE_UNAVAILABLE."""
    seen = _seen.setdefault(asyncio.get_running_loop(), _Seen())
    return await seen.message() or None


async def _told_message() -> str:
    async with closed_when_unreachable():
        found = await async_redis().get(KEY)
    if found is None:
        stored = await asyncio.to_thread(_stored_message_of_a_thread)
        async with closed_when_unreachable():
            await async_redis().set(KEY, stored, nx=True)
        return stored
    return bytes(found).decode("utf-8", "replace")  # type: ignore[arg-type]


def _stored_message_of_a_thread() -> str:
    """Raises STORE_UNAVAILABLE."""
    try:
        return _stored_message()
    except (DatabaseError, InterfaceError) as error:
        log.warning("maintenance_not_read", error=str(error))
        raise store_unavailable() from error
    finally:
        connections.close_all()
