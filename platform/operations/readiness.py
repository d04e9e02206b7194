"""Waiting for the children to be ready, with something to look at meanwhile."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

from operations.child_process import ChildProcess
from operations.log_files import last_lines
from operations.terminal import stage

POLL_S = 0.1
MAX_STARTS = 3
"""A child that died this often before anything was ready will not get better by itself."""


class StartFailed(Exception):
    """Its message is all that the reader sees."""


async def wait_ready(
    title: str,
    question: Callable[[], Awaitable[bool]],
    child: ChildProcess,
    news: Callable[[], str] = str,
) -> None:
    """Ask until the answer is yes. Raises StartFailed when `child` keeps dying instead."""
    with stage(title) as shown:
        while not await question():
            if child.num_starts > MAX_STARTS or (child.pid is None and child.num_starts == MAX_STARTS):
                raise StartFailed(death_notice(child.spec.name, child.log))
            shown.say(news())
            await asyncio.sleep(POLL_S)


def death_notice(name: str, log: Path) -> str:
    shown = "\n  ".join(last_lines(log, 12))
    return f"{name} does not stay up. The end of {log}:\n  {shown}"


async def http_status(host: str, port: int, path: str, ceiling_s: float = 5.0) -> int | None:
    """Of one GET; None where nobody answers in time."""
    request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
    with contextlib.suppress(OSError, TimeoutError, ValueError, IndexError):
        async with asyncio.timeout(ceiling_s):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(request.encode())
            status_line = await reader.readline()
            writer.close()
            return int(status_line.split()[1])
    return None


class EngineNews:
    """What the engine's log says it is at."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._begin = log.stat().st_size if log.exists() else 0
        self._latest = "starting"

    def latest(self) -> str:
        """From the newest line that can be read; earlier runs do not count."""
        if self._log.exists() and self._log.stat().st_size > self._begin:
            described = filter(None, map(describe, reversed(last_lines(self._log, 5))))
            self._latest = next(described, self._latest)
        return self._latest


def describe(line: str) -> str:
    """One structured log line as a few words; a line of another kind as nothing."""
    try:
        fields = json.loads(line)
    except ValueError:
        return ""
    if not isinstance(fields, dict):
        return ""
    what = str(fields.get("stage") or fields.get("event") or "").replace("_", " ")
    done, total = fields.get("done"), fields.get("total")
    return f"{what} {done} of {total}" if total else what
