"""Final usage of orphans in a real Redis: only where the reservation still is, only the newest attempt's."""

from redis.asyncio import Redis

from inference_engine.contract.events import Usage
from inference_engine.serving.orphans import OrphanUsage, OrphanWriter
from servers_of_tests import RedisServer

USAGE = Usage(prompt_tokens=7, cached_tokens=3, output_tokens=5)


async def write(redis: Redis | None, key: str, attempt: int, usage: Usage = USAGE) -> None:
    writer = OrphanWriter(redis)
    writer.submit([OrphanUsage(key, attempt, usage)])
    await writer.flush()


async def test_usage_joins_the_reservation_and_leaves_its_fields_alone(redis: Redis) -> None:
    await redis.hset("octavo:{b:2}:orphan:a", "tenant", "alice")
    await write(redis, "octavo:{b:2}:orphan:a", attempt=1)
    assert await redis.hgetall("octavo:{b:2}:orphan:a") == {
        b"tenant": b"alice",
        b"engine_attempt": b"1",
        b"engine_prompt_tokens": b"7",
        b"engine_cached_tokens": b"3",
        b"engine_output_tokens": b"5",
    }


async def test_a_settled_reservation_does_not_come_back(redis: Redis) -> None:
    await write(redis, "octavo:{b:2}:orphan:settled", attempt=0)
    assert not await redis.exists("octavo:{b:2}:orphan:settled")


async def test_an_older_attempt_does_not_overwrite_a_newer_one(redis: Redis) -> None:
    await redis.hset("octavo:{b:2}:orphan:b", "tenant", "alice")
    await write(redis, "octavo:{b:2}:orphan:b", attempt=2)
    await write(redis, "octavo:{b:2}:orphan:b", attempt=1, usage=Usage(prompt_tokens=1, output_tokens=1))
    assert await redis.hget("octavo:{b:2}:orphan:b", "engine_output_tokens") == b"5"
    await write(redis, "octavo:{b:2}:orphan:b", attempt=3, usage=Usage(prompt_tokens=1, output_tokens=9))
    assert await redis.hget("octavo:{b:2}:orphan:b", "engine_output_tokens") == b"9"


async def test_without_redis_or_with_a_dead_one_nothing_breaks(redis_server: RedisServer) -> None:
    await write(None, "octavo:{b:2}:orphan:c", attempt=0)
    dead = Redis.from_url(redis_server.url, socket_timeout=1.0, socket_connect_timeout=1.0)
    redis_server.kill()
    await write(dead, "octavo:{b:2}:orphan:c", attempt=0)
    redis_server.start()
    assert not await dead.exists("octavo:{b:2}:orphan:c")
    await dead.aclose()
