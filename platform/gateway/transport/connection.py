"""Work for a client lasts as long as the client: who goes away has the work cancelled at once."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from fleet.cancelling import cancelled
from gateway.limits import GENERATION_BODY_BYTES, READ_TIMEOUT_S
from gateway.transport.exchange import ClientGone, Exchange
from inference_engine.contract.codes import Code

TICK_S = 5.0
"""A ping at least every two ticks."""
CLEAN_UP_S = 3.0
"""More than leaving a run takes: it waits for the engine's last word."""


async def while_connected(
    exchange: Exchange, work: Coroutine[Any, Any, None], *, tick_s: float = TICK_S
) -> None:
    """Run `work` to its end. Raises what it raises, and ClientGone. Call it once the body has been read.

    Cancelled itself, by a server that stops, it tells the work so.
    """
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
    except asyncio.CancelledError:
        await cancelled(task, CLEAN_UP_S, Code.DRAINING)
        raise
    finally:
        gone.cancel()
        await cancelled(task, CLEAN_UP_S)
        _note(task)
    task.result()


def _note(task: "asyncio.Task[None]") -> None:
    """Nobody is left to hear how abandoned work failed; asyncio would complain in the log."""
    if not task.cancelled():
        task.exception()


async def serve_body(exchange: Exchange, serve: Callable[[bytes], Coroutine[Any, Any, None]]) -> None:
    """Read a body, then serve it for as long as the client is there. Raises Denied and ClientGone."""
    raw = await exchange.read_body(GENERATION_BODY_BYTES, READ_TIMEOUT_S)
    await while_connected(exchange, serve(raw))
