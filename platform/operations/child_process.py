"""One supervised process: it cannot outlive us, is restarted when it dies and stopped when asked."""

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from operations.children import ChildSpec
from operations.home import ROOT
from operations.log_files import open_log

PR_SET_PDEATHSIG = 1
FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 30.0
SETTLED_AFTER_S = 30.0
"""A process that lived this long did not fail at its start, so the next delay is short again."""

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with(parent: int) -> None:
    """In the child, between fork and exec: killed when `parent` dies, even by SIGKILL (Linux only)."""
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)


class ChildProcess:
    """Runs from `start` until `stop`, through as many processes as it takes."""

    def __init__(
        self,
        spec: ChildSpec,
        environment: Mapping[str, str],
        logs: Path,
        on_death: Callable[[str, int], None],
    ) -> None:
        self.spec = spec
        self.num_starts = 0
        self._environment = environment
        self.log = logs / f"{spec.name}.log"
        self._on_death = on_death
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self._process.returncode is None else None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=self.spec.name)

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL at the ceiling. Returns when the process is gone."""
        self._stopping.set()
        self.signal(signal.SIGTERM)
        if self._task is None:
            return
        done, _ = await asyncio.wait([self._task], timeout=self.spec.stop_ceiling_s)
        if not done:
            self.signal(signal.SIGKILL)
        await self._task

    def kill(self) -> None:
        """At once; the process is not started again."""
        self._stopping.set()
        self.signal(signal.SIGKILL)

    def signal(self, which: signal.Signals) -> None:
        """To the whole group: what the child started itself goes with it."""
        if self.pid is not None:
            _signal_group(self.pid, which)

    async def _run(self) -> None:
        delay = FIRST_DELAY_S
        while not self._stopping.is_set():
            started = time.monotonic()
            status = await self._live_once()
            if self._stopping.is_set():
                return
            self._on_death(self.spec.name, status)
            delay = FIRST_DELAY_S if time.monotonic() - started > SETTLED_AFTER_S else delay
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), delay)
            delay = min(2 * delay, LONGEST_DELAY_S)

    async def _live_once(self) -> int:
        """One process from start to end; returns its status."""
        self._process = await start_process(self.spec, self._environment, self.log)
        self.num_starts += 1
        if self._stopping.is_set():
            self.signal(signal.SIGTERM)
        status = await self._process.wait()
        _signal_group(self._process.pid, signal.SIGKILL)  # whatever it had started itself
        return status


async def start_process(
    spec: ChildSpec,
    environment: Mapping[str, str],
    log: Path,
    *,
    stdin: int = asyncio.subprocess.DEVNULL,
    stdout: int | None = None,
) -> asyncio.subprocess.Process:
    """In a session of its own, so that a Ctrl-C in the terminal reaches the supervisor alone. Both outputs go
    to `log` unless `stdout`, a descriptor or PIPE, says otherwise."""
    parent = os.getpid()

    def before_exec() -> None:
        die_with(parent)
        os.nice(spec.nice)

    with open_log(log) as file:
        return await asyncio.create_subprocess_exec(
            *spec.command,
            stdin=stdin,
            stdout=file if stdout is None else stdout,
            stderr=file,
            env=environment,
            cwd=ROOT,
            start_new_session=True,
            preexec_fn=before_exec,
        )


async def to_its_end(process: asyncio.subprocess.Process, given: bytes | None = None) -> bytes:
    """What it printed, if that is a pipe. A process that is no longer waited for is killed."""
    try:
        output, _ = await process.communicate(given)
        return output or b""
    finally:
        if process.returncode is None:
            _signal_group(process.pid, signal.SIGKILL)


def _signal_group(group: int, which: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, which)
