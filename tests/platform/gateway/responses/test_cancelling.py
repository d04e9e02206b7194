"""A response is cancelled by whichever process makes it, asked by any other."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import redis
from channels.layers import get_channel_layer

from gateway.responses import cancelling
from gateway.responses.cancelling import CancelCalls
from gateway.responses.running import Making, RunningResponses
from gateway.runs.event_answer import EventOutput
from servers_of_tests import RedisServer
from tenants.errors import Denied

Process = tuple[RunningResponses, CancelCalls]


async def _process() -> Process:
    running = RunningResponses()
    calls = CancelCalls(running)
    calls.start()
    async with asyncio.timeout(20):
        await calls.listening.wait()
    return running, calls


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a process that is found; who looks for nothing waits for less."""
    monkeypatch.setattr(cancelling, "FOUND_CEILING_S", 20.0)


@pytest.fixture
async def processes(store: redis.Redis) -> AsyncIterator[tuple[Process, Process]]:
    one, other = await _process(), await _process()
    yield one, other
    for _, calls in (one, other):
        await calls.stop()
    await get_channel_layer().flush()


async def make(running: RunningResponses, tenant_id: str = "7") -> None:
    """A response that lasts until it is cancelled."""
    making = Making(tenant_id, "resp_a", EventOutput(None, None))  # type: ignore[arg-type]
    with running.listed(making):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            assert making.is_cancelled


async def test_any_process_can_be_asked(processes: tuple[Process, Process]) -> None:
    (running, calls), (_, others) = processes
    for asked in (calls, others):
        task = asyncio.create_task(make(running))
        await asyncio.sleep(0)
        assert await asked.cancel("7", "resp_a") is True
        await task
        assert running.find("7", "resp_a") is None


async def test_another_tenants_and_an_unknown_one_are_nobodys(
    processes: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancelling, "FOUND_CEILING_S", 0.3)
    (running, calls), (_, others) = processes
    task = asyncio.create_task(make(running))
    await asyncio.sleep(0)
    for asked in (calls, others):
        assert await asked.cancel("8", "resp_a") is False
        assert await asked.cancel("7", "resp_b") is False
    assert running.find("7", "resp_a") is not None
    assert await calls.cancel("7", "resp_a") is True
    await task


async def test_processes_hear_each_other_again_after_redis_was_away(
    redis_server: RedisServer, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancelling, "FOUND_CEILING_S", 0.3)
    layer = settings.CHANNEL_LAYERS["default"]
    settings.CHANNEL_LAYERS = {"default": {**layer, "CONFIG": {"hosts": [redis_server.url]}}}
    (running, calls), (_, others) = await _process(), await _process()
    redis_server.kill()
    task = asyncio.create_task(make(running))
    with contextlib.suppress(Denied):
        assert await others.cancel("7", "resp_a") is False
    redis_server.start()
    async with asyncio.timeout(20):
        while not (await _asked(others) or task.done()):
            await asyncio.sleep(0.05)
    await task
    for each in (calls, others):
        await each.stop()
    await get_channel_layer().flush()


async def _asked(calls: CancelCalls) -> bool:
    try:
        return await calls.cancel("7", "resp_a")
    except Denied:
        return False
