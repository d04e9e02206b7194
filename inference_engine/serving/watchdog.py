"""Ends a process whose loop hangs, in a kernel or a driver for example: gateways have long given it up."""

import asyncio
from collections.abc import Callable

import structlog

from .progress import Progress
from .shutdown import Shutdown

log = structlog.get_logger(__name__)

_TICK_S = 0.5


class LoopStalled(RuntimeError):
    """Work waits and no step was completed for too long."""


async def watch(progress: Callable[[], Progress], shutdown: Shutdown, stall_s: float) -> None:
    """Counts its own ticks, not the clock: after a SIGSTOP of the whole process nothing has stalled."""
    last_step, num_still = -1, 0
    while num_still * _TICK_S < stall_s:
        await asyncio.sleep(_TICK_S)
        now = progress()
        num_still = num_still + 1 if now.has_work and now.step == last_step else 0
        last_step = now.step
    log.error("loop_stalled", step=last_step, seconds=stall_s)
    shutdown.die(LoopStalled(f"no step for {stall_s} s"))
