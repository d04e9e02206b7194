"""The event loop of one worker process: a thread, started after the fork by the first task that needs it.

It owns the process's sessions with Redis and the engines; tasks hand it coroutines and wait.
"""

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

import structlog
from django.conf import settings

from admission.settlement import finish_settlements
from bulk.execution.keeping import Keeper
from gateway.services import Services
from quotas.leases import lease_keeper
from quotas.store import close_async_redis

T = TypeVar("T")

log = structlog.get_logger(__name__)

STOP_CEILING_S = 8.0
READY_CEILING_S = 3.0
"""A task waits no longer than this for the first engine to be seen; its lines then wait by themselves."""
POLL_S = 0.05
CALM_POLL_S = 1.0
RENEWALS_A_LEASE = 5
"""Nobody waits for a line, so a worker does at leisure what a gateway does four times a second: what it
spares is the engine's, on the same cores."""


class LoopThread:
    def __init__(self) -> None:
        self.pid = os.getpid()
        self.services: Services
        self.keeper: Keeper
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="octavo-bulk-loop", daemon=True)
        self._thread.start()
        self.run(self._start())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Raises what it raises."""
        return self.start(work).result()

    def start(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(STOP_CEILING_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_CEILING_S)

    async def _start(self) -> None:
        self.services, self.keeper = Services(poll_interval_s=CALM_POLL_S), Keeper()
        keeper = lease_keeper()
        keeper.interval_s = max(keeper.interval_s, settings.OCTAVO_LEASE_SECONDS / RENEWALS_A_LEASE)
        await self.services.start()
        give_up_at = self._loop.time() + READY_CEILING_S
        while not self.services.ready_models() and self._loop.time() < give_up_at:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)

    async def _stop(self) -> None:
        await finish_settlements()
        await self.services.stop()
        await close_async_redis()


_thread: LoopThread | None = None
_lock = threading.Lock()


def loop_thread() -> LoopThread:
    """This process's; one inherited through a fork is not."""
    global _thread
    with _lock:
        if _thread is None or _thread.pid != os.getpid():
            _thread = LoopThread()
        return _thread


def stop_loop_thread() -> None:
    global _thread
    with _lock:
        if _thread is not None and _thread.pid == os.getpid():
            _thread.stop()
        _thread = None
