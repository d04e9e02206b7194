"""A loop under test behind a real gRPC server, in this process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from inference_engine.serving.server import SessionServer
from inference_engine.serving.settings import Settings
from stand_ins.golden_frames import FROM_ENGINE
from stand_ins.loop_under_test import LoopUnderTest
from stand_ins.raw_gateway import RawGateway

DESCRIPTION: Any = FROM_ENGINE["description"]


class EngineServer:
    def __init__(self, under_test: LoopUnderTest, settings: Settings) -> None:
        self.under_test = under_test
        self.drains: list[float] = []
        self.server = SessionServer(settings, under_test.loop, DESCRIPTION, self.drains.append)
        self.address = ""
        aio = asyncio.get_running_loop()
        under_test.on_wake = lambda outboxes: aio.call_soon_threadsafe(self.server.wake, outboxes) and None

    def gateway(self, **options: Any) -> RawGateway:
        return RawGateway(self.address, **options)


@asynccontextmanager
async def engine_server(
    folder: Path, runner: Any = None, *, settings: dict[str, Any] | None = None, **config: Any
) -> AsyncIterator[EngineServer]:
    """`config` is the scheduler's. Its address is a socket in `folder` unless settings name another."""
    given = {"model_dir": folder, "address": f"unix:{folder}/e.sock", **(settings or {})}
    under_test = LoopUnderTest(runner, **config)
    engine = EngineServer(under_test, Settings(**given))
    under_test.start()
    engine.address = await engine.server.start()
    yield engine
    await engine.server.stop()
    await asyncio.to_thread(under_test.stop)
    assert under_test.deaths == []
    under_test.scheduler.check_integrity()
