"""Ending a task for certain."""

import asyncio
from typing import Any

AGAIN_S = 0.2


async def cancelled(task: "asyncio.Task[Any]", again_s: float = AGAIN_S) -> None:
    """Cancel and wait; once may not do: redis-py (wait_for of Python 3.11) can swallow it."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=again_s)
