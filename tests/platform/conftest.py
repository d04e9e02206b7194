"""What tests of the platform's rooms share: a clean Redis and empty caches, tenants, both databases, and an
engine that follows a script."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis
from django.core.management import call_command
from django.db import connections

from admission.facts import RequestFacts
from admission.settlement import finish_settlements
from api_keys import authentication
from api_keys.models import ApiKey
from api_keys.principal import Principal
from api_keys.services import create_key
from control_plane.env import database
from daytime import where_it_is_noon
from quotas import budget_loading
from quotas.store import close_async_redis
from stand_ins.scripted_engine import ScriptedEngine
from tenants.models import Tenant
from tenants.services import create_tenant


@pytest.fixture(autouse=True)
def patience_with_redis(settings: Any) -> None:
    """On a busy machine; tests of a Redis that hangs have less."""
    settings.OCTAVO_REDIS_TIMEOUT_SECONDS = 20.0


@pytest.fixture
def store(redis_url: str) -> Iterator[redis.Redis]:
    """The run's Redis with no tenant's state in it; this process knows no key."""
    client = redis.Redis.from_url(redis_url)
    names = list(client.scan_iter("octavo:{b:*", count=1000))
    if names:
        client.delete(*names)
    authentication.cache.forget_all()
    yield client
    client.close()


@pytest.fixture
async def loop_store(store: redis.Redis) -> AsyncIterator[redis.Redis]:
    """The same for tests on an event loop: what they leave running is finished before the loop ends."""
    yield store
    await finish_settlements()
    await close_async_redis()


@pytest.fixture
def tenant(transactional_db: None) -> Tenant:
    return create_tenant("Acme", time_zone=where_it_is_noon())


@pytest.fixture
def key_and_secret(tenant: Tenant) -> tuple[ApiKey, str]:
    return create_key(tenant, "alice's key")


@pytest.fixture
def principal(store: redis.Redis, key_and_secret: tuple[ApiKey, str]) -> Principal:
    key = key_and_secret[0]
    return authentication.principal_of(key, authentication.cache.generation)


@pytest.fixture
def facts() -> Callable[..., RequestFacts]:
    """facts("r1", max_tokens=5): everything else is plain."""

    def make(request_id: str = "r1", **changes: Any) -> RequestFacts:
        plain = {"model": "m", "endpoint": "/v1/completions", "prompt_tokens": 7}
        return RequestFacts(request_id=request_id, **{**plain, **changes})

    return make


@pytest.fixture
def in_thread() -> Callable[..., Awaitable[Any]]:
    """await in_thread(service, ...): Django's database calls, from a test on an event loop."""

    def work(act: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        try:
            return act(*args, **named)
        finally:
            connections.close_all()

    async def run(act: Callable[..., Any], *args: Any, **named: Any) -> Any:
        return await asyncio.to_thread(work, act, args, named)

    return run


@pytest.fixture(params=["sqlite", "postgresql"])
def any_database(request: pytest.FixtureRequest, transactional_db: None) -> Iterator[str]:
    """The test runs on SQLite, then on PostgreSQL, with the same tables."""
    if request.param == "sqlite":
        yield "sqlite"
        return
    url = request.getfixturevalue("postgres_url")
    before = dict(connections.databases)
    _use({"default": database(url, None)})  # type: ignore[arg-type]
    call_command("migrate", verbosity=0, interactive=False)
    yield "postgresql"
    call_command("flush", verbosity=0, interactive=False)
    _use(before)


def _use(databases: dict[str, Any]) -> None:
    """Point Django, and the threads that ask it for requests, at other databases."""
    authentication._lookups.shutdown(wait=True)
    authentication._lookups = ThreadPoolExecutor(max_workers=2)
    budget_loading._threads.shutdown(wait=True)
    budget_loading._threads = ThreadPoolExecutor(max_workers=2)
    if "default" in connections:
        wrapper = connections["default"]
        wrapper.close()
        if hasattr(wrapper, "close_pool"):
            wrapper.close_pool()
        del connections["default"]
    connections.databases.clear()
    connections.databases.update(connections.configure_settings(databases))


@pytest.fixture
def socket_folder() -> Iterator[Path]:
    """Short: a unix socket's path has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="oct-") as folder:
        yield Path(folder)


@pytest.fixture
async def engine(socket_folder: Path) -> AsyncIterator[ScriptedEngine]:
    engine = ScriptedEngine(socket_folder)
    await engine.start()
    yield engine
    await engine.stop()
