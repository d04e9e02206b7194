"""An engine that exists but no longer renews its record is killed, so that it is started again."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from redis.asyncio import Redis

from inference_engine.contract.registry import (
    REPLICA_SET_KEY,
    ReplicaRecord,
    ReplicaState,
    encode_record,
    record_key,
)
from inference_engine.contract.wire import PROTOCOL_VERSION
from operations.child_process import ChildProcess
from operations.children import ChildSpec
from operations.engine_watch import LOST_AFTER_LOOKS, EngineWatch
from servers_of_tests import RedisServer


class World:
    """A process that sleeps in an engine's place, its watch, and the Redis between them."""

    def __init__(self, redis: Redis, logs: Path) -> None:
        self.redis = redis
        self.deaths: list[int] = []
        command = (sys.executable, "-c", "import time; time.sleep(600)")
        on_death = lambda name, status: self.deaths.append(status)  # noqa: E731
        self.engine = ChildProcess(ChildSpec("engine", command), dict(os.environ), logs, on_death)
        self.watch = EngineWatch(redis, self.engine)
        self.num_looks = 0
        find = self.watch._find_record

        async def counted() -> ReplicaRecord | None:
            self.num_looks += 1
            return await find()

        self.watch._find_record = counted  # type: ignore[method-assign]

    async def publish(self, state: ReplicaState) -> None:
        record = ReplicaRecord(
            replica_id="one",
            boot_id="b",
            address="unix:/nowhere",
            model="m",
            state=state,
            protocol_version=PROTOCOL_VERSION,
            pid=self.engine.pid or 0,
        )
        await self.redis.set(record_key("one"), encode_record(record))
        await self.redis.sadd(REPLICA_SET_KEY, "one")

    async def forget(self) -> None:
        """As when the record runs out."""
        await self.redis.delete(record_key("one"))

    async def until(self, question: Callable[[], object]) -> None:
        async with asyncio.timeout(30):
            while not question():
                await asyncio.sleep(0.02)


@pytest.fixture
async def world(redis_server: RedisServer, tmp_path: Path) -> AsyncIterator[World]:
    redis = Redis.from_url(redis_server.url)
    made = World(redis, tmp_path)
    made.engine.start()
    watching = asyncio.create_task(made.watch.run())
    await made.until(lambda: made.engine.pid)
    yield made
    watching.cancel()
    await made.engine.stop()
    await redis.aclose()


async def test_a_ready_engine_whose_record_expires_is_killed_and_started_again(world: World) -> None:
    first = world.engine.pid
    await world.publish(ReplicaState.READY)
    await world.until(lambda: world.watch.is_ready)
    await world.forget()
    await world.until(lambda: world.deaths)
    assert world.deaths == [-signal.SIGKILL]
    assert world.watch.num_kills == 1
    await world.until(lambda: world.engine.pid)
    assert world.engine.pid != first
    assert not world.watch.is_ready


async def test_an_engine_that_still_loads_is_left_alone(world: World) -> None:
    await world.publish(ReplicaState.STARTING)
    await world.until(lambda: world.watch.record is not None)
    await world.forget()
    await world.until(lambda: world.watch.record is None)
    looked = world.num_looks
    await world.until(lambda: world.num_looks > looked + LOST_AFTER_LOOKS + 2)
    assert world.deaths == []


async def test_a_stall_of_the_whole_machine_kills_no_engine(world: World) -> None:
    await world.publish(ReplicaState.READY)
    await world.until(lambda: world.watch.is_ready)
    await world.forget()
    looked = world.num_looks
    threading.Event().wait(2.5)  # nothing on this event loop goes on
    await world.until(lambda: world.num_looks > looked)
    await world.publish(ReplicaState.READY)
    looked = world.num_looks
    await world.until(lambda: world.num_looks > looked + 1)
    assert world.watch.is_ready and world.deaths == []


async def test_another_process_s_record_is_not_taken_for_the_engine_s(world: World) -> None:
    record = ReplicaRecord(
        replica_id="other",
        boot_id="b",
        address="unix:/nowhere",
        model="m",
        state=ReplicaState.READY,
        protocol_version=PROTOCOL_VERSION,
        pid=os.getpid(),
    )
    await world.redis.set(record_key("other"), encode_record(record))
    await world.redis.sadd(REPLICA_SET_KEY, "other")
    await world.publish(ReplicaState.STARTING)
    await world.until(lambda: world.watch.record is not None)
    assert not world.watch.is_ready
