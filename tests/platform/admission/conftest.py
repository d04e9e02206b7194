"""The door with a Redis of its own, that tests stop, pause and restart; the streams as they are."""

from collections.abc import AsyncIterator, Callable

import pytest
import redis

from admission.settlement import finish_settlements
from api_keys import authentication
from quotas.store import close_async_redis
from servers_of_tests import RedisServer
from tenants.shards import bucket_key
from usage.ledger_rows import decoded, ledger_entry

Rows = Callable[[], list[dict[str, str]]]


@pytest.fixture
async def server(redis_server: RedisServer, settings: object) -> AsyncIterator[RedisServer]:
    settings.REDIS_URL = redis_server.url  # type: ignore[attr-defined]
    authentication.cache.forget_all()
    yield redis_server
    redis_server.resume()
    await finish_settlements()
    await close_async_redis()


def rows_in(client: redis.Redis) -> list[dict[str, str]]:
    streams = [bucket_key(number, "ledger") for number in range(64)]
    found = [fields for stream in streams for _, fields in client.xrange(stream)]  # type: ignore[union-attr]
    rows = [decoded(fields) for fields in found]
    for row in rows:
        ledger_entry(row)  # the writer must be able to read it
    return rows


@pytest.fixture
def rows(loop_store: redis.Redis) -> Rows:
    """The rows on their way to the ledger in the run's Redis."""
    return lambda: rows_in(loop_store)


@pytest.fixture
def server_rows(server: RedisServer) -> Rows:
    """The same in the test's own Redis, the first of each request, as the ledger takes them."""

    def read() -> list[dict[str, str]]:
        with redis.Redis.from_url(server.url) as client:
            return list({row["request_id"]: row for row in reversed(rows_in(client))}.values())

    return read
