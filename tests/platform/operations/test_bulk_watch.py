"""The watch over worker and beat: pure judgement first, then a real Redis and real processes."""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
from redis.asyncio import Redis

from operations.bulk_watch import (
    IDLE_AFTER_S,
    PULSE_KEY,
    QUEUE_KEY,
    SILENT_AFTER_S,
    STOPPED_AFTER_S,
    SWEPT_KEY,
    BulkWatch,
    Judge,
    Pulse,
    Seen,
)
from operations.child_process import ChildProcess
from operations.children import ChildSpec
from polling import until
from servers_of_tests import RedisServer

FREE = Pulse(at=0.0, num_places=3, num_busy=1, num_taken=5)
BUSY = Pulse(at=0.0, num_places=3, num_busy=3, num_taken=5)


def worker_stuck_after(seen: list[Seen], seconds: float) -> list[bool]:
    """What the judge says of each, the last one seen again after a time."""
    judge = Judge(0.0)
    verdicts = [judge.worker_is_stuck(each, float(now)) for now, each in enumerate(seen)]
    return [*verdicts, judge.worker_is_stuck(seen[-1], len(seen) + seconds)]


@pytest.mark.parametrize(
    ("seen", "is_stuck"),
    [
        (Seen(7, FREE, 4, 0.0), True),
        (Seen(7, FREE, 0, 0.0), False),
        (Seen(7, BUSY, 4, 0.0), False),
        (Seen(7, None, 0, 0.0), True),
    ],
    ids=["a task waits and a place is free", "nothing waits", "every place is busy", "no pulse"],
)
def test_only_a_worker_that_could_and_does_not_is_stuck(seen: Seen, is_stuck: bool) -> None:
    begun = Seen(7, FREE, 0, 0.0)
    longest = max(IDLE_AFTER_S, SILENT_AFTER_S)
    assert worker_stuck_after([begun, seen], longest + 2) == [False, False, is_stuck]
    assert worker_stuck_after([begun, seen], longest / 2) == [False, False, False]


def test_one_that_has_never_spoken_may_still_be_starting() -> None:
    assert worker_stuck_after([Seen(7, None, 4, 0.0)], 10 * SILENT_AFTER_S) == [False, False]


def test_a_new_process_begins_with_a_clean_record() -> None:
    judge = Judge(0.0)
    judge.worker_is_stuck(Seen(7, FREE, 4, 0.0), 0.0)
    late = 10 * IDLE_AFTER_S
    assert not judge.worker_is_stuck(Seen(8, FREE, 4, 0.0), late)
    assert not judge.worker_is_stuck(Seen(8, FREE, 4, 0.0), late + IDLE_AFTER_S / 2)


def test_one_that_takes_tasks_is_moving() -> None:
    judge = Judge(0.0)
    for number in range(10):
        taken = Pulse(0.0, 3, 1, number)
        assert not judge.worker_is_stuck(Seen(7, taken, 4, 0.0), number * IDLE_AFTER_S / 2)


def test_a_clock_that_does_not_strike_although_somebody_could_hear_it() -> None:
    judge = Judge(0.0)
    assert not judge.clock_has_stopped(Seen(7, FREE, 0, 1.0), 0.0)
    assert judge.clock_has_stopped(Seen(7, FREE, 0, 1.0), STOPPED_AFTER_S + 1)
    assert not judge.clock_has_stopped(Seen(7, FREE, 0, 2.0), STOPPED_AFTER_S + 2)
    assert not judge.clock_has_stopped(Seen(7, BUSY, 0, 2.0), 3 * STOPPED_AFTER_S)


async def test_a_stall_of_the_whole_machine_kills_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("operations.bulk_watch.IDLE_AFTER_S", 0.5)
    monkeypatch.setattr("operations.bulk_watch.LOOK_EVERY_S", 0.01)
    child = Mock(pid=7)
    watch = BulkWatch(Mock(), Mock(), child, child)
    looks: list[Seen] = []

    async def look() -> Seen:
        if len(looks) == 1:
            time.sleep(1)  # noqa: ASYNC251
        looks.append(Seen(7, FREE, 4, 1.0))
        return looks[-1]

    monkeypatch.setattr(watch, "_look", look)
    watching = asyncio.create_task(watch.run())
    await until(lambda: len(looks) > 5)
    watching.cancel()
    assert watch.num_kills == 0


async def test_a_worker_that_takes_nothing_is_killed_and_started_again(
    redis_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("operations.bulk_watch.IDLE_AFTER_S", 0.5)
    monkeypatch.setattr("operations.bulk_watch.LOOK_EVERY_S", 0.1)
    redis = Redis.from_url(redis_server.url)
    sleeping = (sys.executable, "-c", "import time; time.sleep(600)")
    deaths: list[str] = []
    children = [
        ChildProcess(ChildSpec(name, sleeping), dict(os.environ), tmp_path, lambda who, _: deaths.append(who))
        for name in ("worker", "beat")
    ]
    watch = BulkWatch(redis, redis, *children)
    for child in children:
        child.start()
    await redis.rpush(QUEUE_KEY, "a task")
    await redis.set(SWEPT_KEY, "1")
    watching = asyncio.create_task(watch.run())
    try:
        async with asyncio.timeout(30):
            while not deaths:
                pulse = {"at": time.time(), "num_places": 3, "num_busy": 0, "num_taken": 5}
                await redis.set(f"{PULSE_KEY}{children[0].pid}", json.dumps(pulse))
                await asyncio.sleep(0.05)
            while children[0].num_starts < 2:
                await asyncio.sleep(0.05)
    finally:
        watching.cancel()
        for child in children:
            await child.stop()
        await redis.aclose()
    assert deaths == ["worker"]
    assert watch.num_kills == 1
