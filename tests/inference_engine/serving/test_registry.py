"""The replica's record in a real Redis: published, renewed, withdrawn, and unharmed by Redis going away."""

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from inference_engine.contract.events import Stats
from inference_engine.contract.limits import RECORD_TTL_S
from inference_engine.contract.registry import (
    REPLICA_SET_KEY,
    ReplicaRecord,
    ReplicaState,
    decode_record,
    record_key,
)
from inference_engine.serving.registry import Registration, first_record
from polling import until
from servers_of_tests import RedisServer


@pytest.fixture
async def redis(redis_server: RedisServer) -> AsyncIterator[Redis]:
    client = Redis.from_url(redis_server.url, socket_timeout=1.0, socket_connect_timeout=1.0)
    yield client
    await client.aclose()


async def published(redis: Redis) -> ReplicaRecord | None:
    try:
        data = await redis.get(record_key("one"))
    except (RedisError, OSError):
        return None
    return None if data is None else decode_record(data)


def registration(redis: Redis | None) -> Registration:
    return Registration(redis, first_record("one", "unix:/run/e.sock", "tiny", "rev"))


async def test_a_record_is_published_at_once_and_changes_at_once(redis: Redis) -> None:
    replica = registration(redis)
    first = await until(lambda: published(redis))
    assert (first.state, first.model, first.revision) == (ReplicaState.STARTING, "tiny", "rev")
    assert await redis.smembers(REPLICA_SET_KEY) == {b"one"}
    assert 0 < await redis.pttl(record_key("one")) <= RECORD_TTL_S * 1000
    replica.announce("unix:/run/real.sock", "print", lambda: Stats(num_running=3))
    ready = await until(lambda: in_state(redis, ReplicaState.READY))
    assert (ready.address, ready.fingerprint, ready.stats.num_running) == ("unix:/run/real.sock", "print", 3)
    replica.drain()
    await until(lambda: in_state(redis, ReplicaState.DRAINING))
    await replica.withdraw()
    assert await published(redis) is None
    assert await redis.smembers(REPLICA_SET_KEY) == set()


async def in_state(redis: Redis, state: ReplicaState) -> ReplicaRecord | None:
    record = await published(redis)
    return record if record is not None and record.state is state else None


async def test_a_heartbeat_renews_the_record_and_every_start_has_a_boot_id_of_its_own(redis: Redis) -> None:
    replica = registration(redis)
    first = await until(lambda: published(redis))
    later = await until(lambda: newer_than(redis, first.heartbeat_at))
    assert later.boot_id == first.boot_id != first_record("one", "a", "m", "r").boot_id
    await replica.withdraw()


async def newer_than(redis: Redis, heartbeat_at: float) -> ReplicaRecord | None:
    record = await published(redis)
    return record if record is not None and record.heartbeat_at > heartbeat_at else None


async def test_it_comes_back_by_itself_after_redis_was_killed(
    redis: Redis, redis_server: RedisServer
) -> None:
    replica = registration(redis)
    before = await until(lambda: published(redis))
    redis_server.kill()
    replica.announce("unix:/run/real.sock", "print", Stats)
    redis_server.start()
    after = await until(lambda: newer_than(redis, before.heartbeat_at))
    assert after.state is ReplicaState.READY
    await replica.withdraw()


async def test_withdrawing_ends_while_redis_is_away(redis: Redis, redis_server: RedisServer) -> None:
    replica = registration(redis)
    await until(lambda: published(redis))
    redis_server.kill()
    await replica.withdraw()
    redis_server.start()
    assert await published(redis) is None or await redis.pttl(record_key("one")) > 0


async def test_without_redis_there_is_nothing_to_publish_and_nothing_to_withdraw() -> None:
    replica = registration(None)
    replica.announce("unix:/run/real.sock", "print", Stats)
    await replica.withdraw()
