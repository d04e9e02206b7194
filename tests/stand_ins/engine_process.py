"""`python -m inference_engine` as a child process, with its log lines."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from polling import until
from stand_ins.raw_gateway import RawGateway

ROOT = Path(__file__).resolve().parents[2]
START_CEILING_S = 60.0


class EngineProcess:
    def __init__(self, process: asyncio.subprocess.Process, address: str) -> None:
        self._process = process
        self.address = address
        self.lines: list[dict[str, Any]] = []
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self.lines.append(json.loads(line))

    @property
    def pid(self) -> int:
        return self._process.pid

    def events(self) -> list[str]:
        return [line["event"] for line in self.lines]

    async def wait_event(self, event: str, ceiling_s: float = START_CEILING_S) -> dict[str, Any]:
        await until(lambda: event in self.events() or self._reader.done(), ceiling_s=ceiling_s)
        assert event in self.events(), f"{event} was not logged: {self.lines}"
        return next(line for line in self.lines if line["event"] == event)

    async def wait_exit(self, ceiling_s: float = START_CEILING_S) -> int:
        code = await asyncio.wait_for(self._process.wait(), ceiling_s)
        await self._reader
        return code

    def send_signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def gateway(self, **options: Any) -> RawGateway:
        return RawGateway(self.address, **options)

    async def end(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self.wait_exit()


async def start_engine(
    *arguments: str, address: str, script: str | None = None, **environment: str
) -> EngineProcess:
    """Without waiting for it. `script` runs in place of the module."""
    program = ["-c", script] if script else ["-m", "inference_engine"]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *program,
        "--address",
        address,
        *arguments,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=asyncio.subprocess.PIPE,
    )
    return EngineProcess(process, address)


@asynccontextmanager
async def engine_process(
    *arguments: str, address: str, ceiling_s: float = START_CEILING_S, **options: Any
) -> AsyncIterator[EngineProcess]:
    """A process that is ready; killed at the end where it still lives."""
    engine = await start_engine(*arguments, address=address, **options)
    try:
        await engine.wait_event("ready", ceiling_s)
        yield engine
    finally:
        await engine.end()
