"""The Redis that holds quotas, for code on an event loop: one pool per loop, a line for scripts, and word of
a new run.

A run of Redis that is not the one before may have forgotten its last moments. A new run always means new
connections, so each connection asks for the run's id as it opens: nobody can use a new run unannounced.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import redis.asyncio
import structlog
from django.conf import settings
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from quotas.script_calls import Script, ScriptCalls, Value
from tenants.errors import store_unavailable

log = structlog.get_logger(__name__)

MAX_CONNECTIONS = 16

_stores: "WeakKeyDictionary[asyncio.AbstractEventLoop, _Store]" = WeakKeyDictionary()
_run_listeners: list[Callable[[], None]] = []
_known_run: str | None = None
_run_number = 0


class _Store(NamedTuple):
    client: redis.asyncio.Redis
    scripts: ScriptCalls


def async_redis() -> redis.asyncio.Redis:
    """This event loop's client. Its pool waits for a free connection instead of failing a burst."""
    return _store().client


def _store() -> _Store:
    loop = asyncio.get_running_loop()
    store = _stores.get(loop)
    if store is None:
        client = _connect()
        calls = ScriptCalls(client.connection_pool.make_connection, settings.OCTAVO_REDIS_TIMEOUT_SECONDS)
        store = _stores[loop] = _Store(client, calls)
    return store


def _connect() -> redis.asyncio.Redis:
    timeout_s = settings.OCTAVO_REDIS_TIMEOUT_SECONDS
    pool = redis.asyncio.BlockingConnectionPool.from_url(
        settings.REDIS_URL,
        max_connections=MAX_CONNECTIONS,
        timeout=timeout_s,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),
        redis_connect_func=_greet,
    )
    return redis.asyncio.Redis(connection_pool=pool)


async def close_async_redis() -> None:
    """Close this loop's connections."""
    store = _stores.pop(asyncio.get_running_loop(), None)
    if store is not None:
        store.scripts.close()
        await store.client.aclose()
        await store.client.connection_pool.disconnect()


async def _greet(connection: Any) -> None:
    await connection.on_connect()
    await connection.send_command("INFO", "server")
    reply = await connection.read_response()
    text = reply.decode() if isinstance(reply, bytes) else str(reply)
    runs = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("run_id:")]
    _note_run(runs[0] if runs else "")


def _note_run(run: str) -> None:
    global _known_run, _run_number
    before, _known_run = _known_run, run
    if before is not None and before != run:
        _run_number += 1
        log.warning("redis_new_run", run=run)
        for listener in _run_listeners:
            listener()


def current_run() -> str:
    """Its id, as the newest connection was told; empty before the first."""
    return _known_run or ""


def run_number() -> int:
    """How many new runs of Redis this process has seen."""
    return _run_number


def on_new_run(listener: Callable[[], None]) -> None:
    """Call `listener`, on the loop that noticed, whenever Redis turns out to be another run than before."""
    _run_listeners.append(listener)


async def run_script(script: Script, keys: Sequence[str], args: Sequence[Value]) -> Any:
    """Raises RedisError."""
    return await _store().scripts.run(script, keys, args)


@asynccontextmanager
async def closed_when_unreachable() -> AsyncIterator[None]:
    """Whatever Redis can't answer is a denial: STORE_UNAVAILABLE."""
    try:
        yield
    except (RedisError, OSError) as error:
        log.warning("redis_unreachable", error=str(error))
        raise store_unavailable() from error
