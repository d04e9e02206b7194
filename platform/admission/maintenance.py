"""Maintenance: new requests are refused everywhere within a second, running ones go on to their end."""

import asyncio
import time
from weakref import WeakKeyDictionary

from django.db import transaction

from audit.services import record
from quotas.store import async_redis, closed_when_unreachable
from tenants.shards import blocking_redis

KEY = "octavo:maintenance"
GOOD_FOR_S = 0.5
SUBJECT = "platform"

_seen: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[float, str | None]] = WeakKeyDictionary()


def begin_maintenance(message: str, *, actor: str = "system") -> None:
    """`message` is what clients are told. Raises RedisError; then nothing has changed."""
    with transaction.atomic():
        record(actor, "maintenance.begin", SUBJECT, {"message": message})
        blocking_redis().set(KEY, message)


def end_maintenance(*, actor: str = "system") -> None:
    """Raises RedisError; then nothing has changed."""
    with transaction.atomic():
        record(actor, "maintenance.end", SUBJECT)
        blocking_redis().delete(KEY)


async def maintenance_message() -> str | None:
    """None: there is none. At most half a second old. Raises STORE_UNAVAILABLE."""
    loop, now = asyncio.get_running_loop(), time.monotonic()
    good_until, message = _seen.get(loop, (0.0, None))
    if now >= good_until:
        async with closed_when_unreachable():
            found = await async_redis().get(KEY)
        message = None if found is None else bytes(found).decode("utf-8", "replace")  # type: ignore[arg-type]
        _seen[loop] = (now + GOOD_FOR_S, message)
    return message
