"""Waiting for something to become true, with a ceiling."""

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any


async def until(condition: Callable[[], Any], *, ceiling_s: float = 30.0, every_s: float = 0.01) -> Any:
    """The condition's first true value (awaited where it is awaitable). Fails after `ceiling_s`."""
    end = time.monotonic() + ceiling_s
    while True:
        value = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        assert time.monotonic() < end, f"not within {ceiling_s} s: {inspect.getsource(condition).strip()}"
        await asyncio.sleep(every_s)
