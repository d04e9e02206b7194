"""Many calls on one connection: their order, their answers, and a connection that is lost under them."""

import asyncio
import hashlib

import pytest
import redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from quotas.script_calls import Script
from quotas.store import async_redis, close_async_redis, run_script
from servers_of_tests import RedisServer, wait_until

HANG_CEILING_S = 30


def script(source: str) -> Script:
    made = Script("reserve")
    made.source = source
    made.sha = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
    return made


ADD = script("return redis.call('RPUSH', KEYS[1], ARGV[1])")
BROKEN = script("return redis.error_reply('WRONG on purpose')")


async def test_every_call_gets_its_own_answer_over_one_connection(server: RedisServer) -> None:
    answers = await asyncio.gather(*(run_script(ADD, ["{b:1}:l"], [number]) for number in range(300)))
    assert answers == list(range(1, 301))
    assert await async_redis().lrange("{b:1}:l", 0, -1) == [b"%d" % number for number in range(300)]
    with redis.Redis.from_url(server.url) as client:
        assert len([one for one in client.client_list() if "eval" in one["cmd"]]) == 1


async def test_an_error_is_that_of_one_call_alone(server: RedisServer) -> None:
    first, broken, last = await asyncio.gather(
        run_script(ADD, ["{b:1}:e"], ["x"]),
        run_script(BROKEN, [], []),
        run_script(ADD, ["{b:1}:e"], ["y"]),
        return_exceptions=True,
    )
    assert (first, last) == (1, 2)
    assert isinstance(broken, ResponseError) and "on purpose" in str(broken)


async def test_who_stops_waiting_leaves_the_others_their_answers(server: RedisServer) -> None:
    await run_script(ADD, ["{b:1}:c"], ["warm"])
    server.pause()
    gone, stays = (asyncio.ensure_future(run_script(ADD, ["{b:1}:c"], [name])) for name in ("gone", "stays"))
    await asyncio.sleep(0)
    gone.cancel()
    server.resume()
    assert await stays == 3


async def test_calls_of_a_lost_connection_are_sent_once_more(server: RedisServer) -> None:
    await run_script(ADD, ["{b:1}:lost"], ["warm"])
    server.pause()
    calls = [asyncio.ensure_future(run_script(ADD, ["{b:1}:lost"], [number])) for number in range(3)]
    await asyncio.sleep(0)
    server.kill()
    server.start()  # before this loop gets to see the loss
    answers = await asyncio.wait_for(asyncio.gather(*calls), HANG_CEILING_S)
    assert answers == list(range(answers[0], answers[0] + 3))


async def test_without_a_server_each_call_is_an_error(server: RedisServer) -> None:
    server.kill()
    answers = await asyncio.gather(
        *(run_script(ADD, ["{b:1}:x"], [number]) for number in range(5)), return_exceptions=True
    )
    assert all(isinstance(answer, RedisConnectionError) for answer in answers)


async def test_a_server_that_hangs_is_left_after_the_time_set(server: RedisServer, settings: object) -> None:
    await close_async_redis()
    settings.OCTAVO_REDIS_TIMEOUT_SECONDS = 0.3  # type: ignore[attr-defined]
    await run_script(ADD, ["{b:1}:h"], ["warm"])
    server.pause()
    with pytest.raises(RedisTimeoutError):
        await asyncio.wait_for(run_script(ADD, ["{b:1}:h"], ["lost"]), HANG_CEILING_S)
    server.resume()
    assert await run_script(ADD, ["{b:1}:h"], ["last"]) in (2, 3)


async def test_closing_leaves_nobody_waiting(server: RedisServer) -> None:
    await run_script(ADD, ["{b:1}:z"], ["warm"])
    server.pause()
    call = asyncio.ensure_future(run_script(ADD, ["{b:1}:z"], ["lost"]))
    await asyncio.sleep(0)
    await close_async_redis()
    server.resume()
    with pytest.raises(RedisConnectionError):
        await asyncio.wait_for(call, HANG_CEILING_S)
    wait_until(server.answers, "Redis answers")
