"""Work for a client lasts as long as the client: who goes away has the work cancelled at once."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from gateway.exchange import ClientGone, Exchange

TICK_S = 5.0
"""A ping at least every two ticks."""


async def while_connected(
    exchange: Exchange, work: Coroutine[Any, Any, None], *, tick_s: float = TICK_S
) -> None:
    """Run `work` to its end. Raises what it raises, and ClientGone. Call it once the body has been read."""
    task = asyncio.create_task(work)
    gone = asyncio.create_task(exchange.wait_gone())
    try:
        while not task.done():
            await asyncio.wait({task, gone}, timeout=tick_s, return_when=asyncio.FIRST_COMPLETED)
            if gone.done() and not task.done():
                raise ClientGone
            stream = exchange.stream
            if not task.done() and stream is not None and not await stream.tick(tick_s):
                raise ClientGone
    finally:
        gone.cancel()
        task.cancel()
        await asyncio.wait({task})
    task.result()
