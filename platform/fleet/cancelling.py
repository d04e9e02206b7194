"""Ending a task for certain, and telling it why."""

import asyncio
from typing import Any

from inference_engine.contract.codes import Code

AGAIN_S = 0.2


async def cancelled(
    task: "asyncio.Task[Any]", again_s: float = AGAIN_S, why: Code = Code.CLIENT_GONE
) -> None:
    """Cancel and wait; once may not do: redis-py (wait_for of Python 3.11) can swallow it.

    `why` is in the error that the task sees, where somebody asks (admission/admission.py).
    """
    while not task.done():
        task.cancel(why)
        await asyncio.wait({task}, timeout=again_s)
