"""Ending a task for certain."""

import asyncio
from typing import Any

AGAIN_S = 0.2


async def cancelled(task: "asyncio.Task[Any]") -> None:
    """Cancel and wait; once is not enough where a library swallows a cancellation that meets its own reply."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=AGAIN_S)
