"""The engine process: start up, serve, drain, leave."""

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import structlog
from prometheus_client import CollectorRegistry
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from inference_engine.execution.models.model_files import ModelFiles, load_model_files

from .addresses import is_unix, prepare_socket
from .collector import settle_collector
from .inbox import StartDraining
from .logs import ProgressLog
from .loop import EngineLoop, Listeners
from .metrics import StepMetrics, exported
from .orphans import OrphanWriter
from .progress import Progress
from .registry import Registration, first_record
from .server import SessionServer
from .settings import Settings
from .shutdown import ExitCode, Shutdown
from .startup import Loaded, describe, load_runner, make_scheduler
from .watchdog import watch

log = structlog.get_logger(__name__)

_FLUSH_S = 1.0
_LAST_RESORT_S = 5.0
_POLL_S = 0.01


async def serve(settings: Settings) -> ExitCode:
    """Returns when the process should end."""
    redis = _connect(settings.redis_url)
    shutdown = Shutdown(settings.drain_s)
    shutdown.install_signals()
    try:
        await EngineProcess(settings, redis, shutdown).run()
    finally:
        if redis is not None:
            await redis.aclose()
    log.info("stopped", is_clean=shutdown.error is None)
    return ExitCode.CLEAN if shutdown.error is None else ExitCode.BROKEN


def _connect(url: str | None) -> "Redis | None":
    if url is None:
        return None
    retry = Retry(NoBackoff(), 1)  # a heartbeat that is late is worth less than the next one
    return Redis.from_url(url, socket_timeout=1.0, socket_connect_timeout=1.0, retry=retry, max_connections=4)


def _is_busy(progress: Progress) -> bool:
    """Something runs, waits, or will once its constraint is compiled."""
    return progress.has_work or progress.num_compiling > 0


class EngineProcess:
    def __init__(self, settings: Settings, redis: "Redis | None", shutdown: Shutdown) -> None:
        self._settings = settings
        self._redis = redis
        self._shutdown = shutdown
        self._aio = asyncio.get_running_loop()
        self._orphans = OrphanWriter(redis)

    async def run(self) -> None:
        settings = self._settings
        if is_unix(settings.address):
            prepare_socket(settings.address)  # a bad address is found out before a minute of loading
        files = await asyncio.to_thread(load_model_files, settings.model_dir)
        files = files.limited_to(settings.context_length)
        name = settings.model_name or files.name
        record = first_record(settings.effective_replica_id, settings.address, name, files.revision)
        registration = Registration(self._redis, record)
        try:
            loaded = await self._load(files)
            if loaded is not None:
                await self._serve(files, loaded, registration)
        finally:
            await registration.withdraw()

    async def _load(self, files: ModelFiles) -> Loaded | None:
        """None where the process is told to stop first: a load can't be interrupted, only abandoned."""
        loaded: asyncio.Future[Loaded] = self._aio.create_future()

        def load() -> None:
            try:
                outcome = partial(loaded.set_result, load_runner(self._settings, files, ProgressLog()))
            except Exception as error:  # whatever it is, the process reports it and ends
                outcome = partial(loaded.set_exception, error)
            self._aio.call_soon_threadsafe(outcome)

        threading.Thread(target=load, name="octavo-load", daemon=True).start()
        stopped = asyncio.create_task(self._shutdown.requested.wait())
        await asyncio.wait((loaded, stopped), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        return loaded.result() if loaded.done() else None

    async def _serve(self, files: ModelFiles, loaded: Loaded, registration: Registration) -> None:
        description = describe(self._settings, files, loaded)
        metrics = CollectorRegistry()
        loop = self._make_loop(files, loaded, StepMetrics(metrics))
        server = self._server = SessionServer(self._settings, loop, description, self._shutdown.drain)
        with exported(self._settings.metrics_port, metrics, lambda: loop.progress().stats):
            settle_collector()
            loop.start()
            listening = await server.start()
            address = self._settings.advertised_address or listening
            registration.announce(address, description.fingerprint, lambda: loop.progress().stats)
            log.info(
                "ready", stage="ready", address=address, model=description.model, backend=description.backend
            )
            watcher = asyncio.create_task(watch(loop.progress, self._shutdown, self._settings.stall_s))
            await self._shutdown.requested.wait()
            registration.drain()
            await self._drain(loop, server)
            watcher.cancel()
            await self._leave(loop, server)

    def _make_loop(self, files: ModelFiles, loaded: Loaded, metrics: StepMetrics) -> EngineLoop:
        listeners = Listeners(
            wake=lambda outboxes: self._call_soon(self._server.wake, outboxes),
            orphans=lambda orphans: self._call_soon(self._orphans.submit, orphans),
            died=self._on_death,
        )
        scheduler = make_scheduler(self._settings, files, loaded.runner.num_blocks)
        return EngineLoop(
            scheduler,
            loaded.runner,
            listeners,
            lag=self._settings.effective_lag,
            compiler=loaded.compiler,
            metrics=metrics,
        )

    def _call_soon(self, act: Callable[..., None], *arguments: object) -> None:
        """From the loop's thread. When asyncio is gone nobody is left to tell."""
        with suppress(RuntimeError):
            self._aio.call_soon_threadsafe(act, *arguments)

    def _on_death(self, error: BaseException) -> None:
        self._call_soon(self._shutdown.die, error)
        last_resort = threading.Timer(_LAST_RESORT_S, os._exit, (ExitCode.BROKEN,))
        last_resort.daemon = True
        last_resort.start()

    async def _drain(self, loop: EngineLoop, server: SessionServer) -> None:
        """Until nothing runs and all is told, the deadline, or a second wish to end."""
        log.info("draining", seconds=self._shutdown.drain_s, num_running=loop.progress().stats.num_running)
        loop.inbox.put(StartDraining())
        ends_at = self._aio.time() + self._shutdown.drain_s
        while (_is_busy(loop.progress()) or not server.is_flushed) and self._aio.time() < ends_at:
            if self._shutdown.at_once.is_set():
                return
            await asyncio.sleep(_POLL_S)

    async def _leave(self, loop: EngineLoop, server: SessionServer) -> None:
        """What is done is delivered; what still runs ends with its stream, and gateways move it elsewhere."""
        with suppress(TimeoutError):
            await asyncio.wait_for(server.flush(), _FLUSH_S)
        with suppress(TimeoutError):
            await asyncio.wait_for(server.stop(), _FLUSH_S)
        await asyncio.to_thread(loop.stop, _FLUSH_S)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._orphans.flush(), _FLUSH_S)
