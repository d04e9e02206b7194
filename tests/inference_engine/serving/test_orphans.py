"""Final usage of orphans in a real Redis: only where the reservation still is, only the newest attempt's."""

import asyncio

from redis.asyncio import Redis

from inference_engine.contract.events import Usage
from inference_engine.serving.orphans import OrphanUsage, OrphanWriter
from polling import until
from servers_of_tests import RedisServer
from usage.ledger_rows import decoded, engine_tokens

USAGE = Usage(prompt_tokens=7, cached_tokens=3, output_tokens=5)


async def write(redis: Redis | None, key: str, attempt: int, usage: Usage = USAGE) -> None:
    writer = OrphanWriter(redis)
    writer.submit([OrphanUsage(key, "r-0", attempt, "", usage)])
    await writer.flush()


async def test_usage_joins_the_reservation_and_leaves_its_fields_alone(redis: Redis) -> None:
    await redis.hset("octavo:{b:2}:orphan:a", "tenant", "alice")
    await write(redis, "octavo:{b:2}:orphan:a", attempt=1)
    assert await redis.hgetall("octavo:{b:2}:orphan:a") == {
        b"tenant": b"alice",
        b"engine_usage:r-0": b"1 7 3 5 r-0",
    }


async def test_choices_of_one_reservation_stand_side_by_side(redis: Redis) -> None:
    """And are read back by whoever settles: the prompt once, all outputs."""
    key = "octavo:{b:2}:orphan:several"
    await redis.hset(key, "tenant", "alice")
    writer = OrphanWriter(redis)
    writer.submit(
        [
            OrphanUsage(key, "r-0", 0, "r-a", USAGE),
            OrphanUsage(key, "r-1", 0, "r-a", Usage(prompt_tokens=7, output_tokens=9)),
            OrphanUsage(key, "r-2", 0, "r-b", Usage(prompt_tokens=4, output_tokens=1)),
        ]
    )
    await writer.flush()
    assert engine_tokens(decoded(await redis.hgetall(key))) == {
        "prompt_tokens": 11,
        "cached_tokens": 3,
        "output_tokens": 15,
    }


async def test_a_settled_reservation_does_not_come_back(redis: Redis) -> None:
    await write(redis, "octavo:{b:2}:orphan:settled", attempt=0)
    assert not await redis.exists("octavo:{b:2}:orphan:settled")


async def test_an_older_attempt_does_not_overwrite_a_newer_one(redis: Redis) -> None:
    await redis.hset("octavo:{b:2}:orphan:b", "tenant", "alice")
    await write(redis, "octavo:{b:2}:orphan:b", attempt=2)
    await write(redis, "octavo:{b:2}:orphan:b", attempt=1, usage=Usage(prompt_tokens=1, output_tokens=1))
    assert await redis.hget("octavo:{b:2}:orphan:b", "engine_usage:r-0") == b"2 7 3 5 r-0"
    await write(redis, "octavo:{b:2}:orphan:b", attempt=3, usage=Usage(prompt_tokens=1, output_tokens=9))
    assert await redis.hget("octavo:{b:2}:orphan:b", "engine_usage:r-0") == b"3 1 0 9 r-0"


async def test_a_redis_that_is_away_is_waited_for(redis_server: RedisServer) -> None:
    client = Redis.from_url(redis_server.url, socket_timeout=1.0, socket_connect_timeout=1.0)
    key = "octavo:{b:2}:orphan:c"
    await client.hset(key, "tenant", "alice")
    redis_server.kill()
    writer = OrphanWriter(client, retry_s=0.5)
    writer.submit([OrphanUsage(key, "r-0", 1, "", USAGE)])
    await asyncio.sleep(0)
    redis_server.start()
    await writer.flush()
    assert await client.hget(key, "engine_usage:r-0") == b"1 7 3 5 r-0"
    await client.aclose()


async def test_what_a_dying_redis_forgot_is_written_again(redis: Redis) -> None:
    key = "octavo:{b:2}:orphan:d"
    await redis.hset(key, "tenant", "alice")
    writer = OrphanWriter(Forgetful(redis), again_s=0.05)  # type: ignore[arg-type]
    writer.submit([OrphanUsage(key, "r-0", 1, "", USAGE)])
    await until(lambda: redis.hexists(key, "engine_usage:r-0"))
    await writer.flush()


class Forgetful:
    """A Redis that answers for its first write and doesn't keep it."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._has_forgotten = False

    async def eval(self, script: str, num_keys: int, key: str, field: str, *figures: int | str) -> object:
        answer = await self._redis.eval(script, num_keys, key, field, *figures)
        if not self._has_forgotten:
            await self._redis.hdel(key, field)
        self._has_forgotten = True
        return answer


async def test_without_redis_or_with_a_dead_one_nothing_breaks(redis_server: RedisServer) -> None:
    await write(None, "octavo:{b:2}:orphan:c", attempt=0)
    dead = Redis.from_url(redis_server.url, socket_timeout=1.0, socket_connect_timeout=1.0)
    redis_server.kill()
    writer = OrphanWriter(dead, retry_s=0.01)
    writer.submit([OrphanUsage("octavo:{b:2}:orphan:e", "r-0", 0, "", USAGE)])
    await writer.flush()
    redis_server.start()
    assert not await dead.exists("octavo:{b:2}:orphan:e")
    await dead.aclose()
