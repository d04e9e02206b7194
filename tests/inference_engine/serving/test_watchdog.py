"""A loop that stands still while work waits is given up; one that is idle or moves is not."""

import asyncio

import pytest

from inference_engine.serving import watchdog
from inference_engine.serving.progress import Progress
from inference_engine.serving.shutdown import Shutdown
from inference_engine.serving.watchdog import LoopStalled, watch
from polling import until

STALL_S = 0.1


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "_TICK_S", STALL_S / 2)


async def test_standing_still_with_work_is_death() -> None:
    shutdown = Shutdown(1.0)
    await asyncio.wait_for(watch(lambda: Progress(step=5, has_work=True), shutdown, STALL_S), 30)
    assert isinstance(shutdown.error, LoopStalled) and shutdown.at_once.is_set()


@pytest.mark.parametrize("is_idle", [True, False])
async def test_idle_or_moving_is_not(is_idle: bool) -> None:
    num_looks = 0

    def progress() -> Progress:
        nonlocal num_looks
        num_looks += 1
        return Progress(step=5) if is_idle else Progress(step=num_looks, has_work=True)

    shutdown = Shutdown(1.0)
    watching = asyncio.create_task(watch(progress, shutdown, STALL_S))
    await until(lambda: num_looks >= 5)
    assert not watching.done() and shutdown.error is None
    watching.cancel()
