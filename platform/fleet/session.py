"""One gRPC stream with one engine process, from its Description to its loss."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass

import grpc
import structlog

from fleet.cancelling import cancelled
from fleet.channels import TlsFiles, dial
from fleet.failures import EngineLost, SessionFailed
from fleet.frames import frames_of
from fleet.generation import Event, Generation
from fleet.liveness import CHECK_INTERVAL_S, STALL_LIMIT_S, Liveness
from inference_engine.contract.events import (
    Accepted,
    Delta,
    Description,
    Finished,
    Pong,
    Refused,
    Stats,
    StepObserved,
)
from inference_engine.contract.registry import ReplicaRecord
from inference_engine.contract.requests import Abort, Describe, GatewayMessage, Generate
from inference_engine.contract.wire import METHOD_PATH, FrameError, decode_engine_frame

log = structlog.get_logger("fleet")

OPEN_TIMEOUT_S = 5.0
"""From dialling to the Description."""
MESSAGES_AT_ONCE = 8
"""A frame of 200 deltas wakes 200 streams, which together hold the event loop for milliseconds."""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    tls: TlsFiles | None = None
    stall_limit_s: float = STALL_LIMIT_S


class EngineSession:
    """Requests of this gateway on one engine. What is sent within one tick of the event loop is one frame."""

    def __init__(self, record: ReplicaRecord, options: SessionOptions) -> None:
        self.record = record
        self._options = options
        self.description: Description | None = None
        self.stats = record.stats
        self.num_sent_since_stats = 0
        self.routed_at = 0
        self.loss: str | None = None
        self._open: dict[str, Generation] = {}
        self._outbox: list[GatewayMessage] = [Describe()]
        self._outbox_filled = asyncio.Event()
        self._outbox_filled.set()
        self._described = asyncio.Event()
        self._lost = asyncio.Event()
        self._liveness = Liveness(time.monotonic(), options.stall_limit_s)
        self._tasks: list[asyncio.Task[None]] = []
        self._handlers: dict[type, Callable[..., None]] = {
            Delta: self._on_event,
            Accepted: self._on_event,
            Finished: self._on_end,
            Refused: self._on_end,
            Stats: self._on_stats,
            Description: self._on_description,
            Pong: _ignore,
            StepObserved: _ignore,
        }

    # opening and closing

    async def open(self) -> None:
        """Dial and wait for the engine's Description. Raises SessionFailed."""
        self._channel = dial(self.record.address, self._options.tls)
        self._call = self._channel.stream_stream(METHOD_PATH, None, None)(None)
        work = (self._read, self._write, self._watch)
        self._tasks = [asyncio.create_task(self._until_lost(one)) for one in work]
        try:
            await self._first_of_described_and_lost()
        finally:
            if self.description is None:
                await self.close(self.loss or f"no description within {OPEN_TIMEOUT_S:.0f} s")
        if self.loss is not None:
            raise SessionFailed(self.loss)

    async def _first_of_described_and_lost(self) -> None:
        waiting = [asyncio.create_task(event.wait()) for event in (self._described, self._lost)]
        try:
            await asyncio.wait(waiting, timeout=OPEN_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()

    async def wait_lost(self) -> str:
        await self._lost.wait()
        return self.loss or ""

    async def close(self, reason: str) -> None:
        """Everything open fails with EngineLost; the engine aborts what came over this stream."""
        self._lose(reason)
        await asyncio.gather(*(cancelled(task) for task in self._tasks))
        self._call.cancel()
        with contextlib.suppress(Exception):
            await self._channel.close(None)

    def _lose(self, reason: str) -> None:
        if self.loss is not None:
            return
        self.loss = reason
        generations, self._open = list(self._open.values()), {}
        for generation in generations:
            generation.lose(EngineLost(reason))
        self._lost.set()

    async def _until_lost(self, work: Callable[[], object]) -> None:
        try:
            reason = await work()  # type: ignore[misc]
        except grpc.aio.AioRpcError as error:
            reason = f"{error.code().name.lower()}: {error.details()}"
        except FrameError as error:
            reason = f"unreadable frame: {error}"
        except asyncio.CancelledError:
            self._lose("closed")
            raise
        except Exception as error:
            log.exception("session_broke", replica=self.record.replica_id)
            reason = repr(error)
        self._lose(str(reason))

    # requests

    @property
    def is_ready(self) -> bool:
        return self.description is not None and self.loss is None

    @property
    def num_open(self) -> int:
        return len(self._open)

    @property
    def load(self) -> int:
        """Requests that wait or run there, those that its last Stats can't know yet included."""
        return self.stats.num_waiting + self.stats.num_running + self.num_sent_since_stats

    def generate(self, message: Generate) -> Generation:
        """Send it; events can't be missed. Raises EngineLost, and ValueError for a repeated id."""
        if self.loss is not None:
            raise EngineLost(self.loss)
        if message.request_id in self._open:
            raise ValueError(f"request id {message.request_id!r} is open already")
        abort = Abort(request_id=message.request_id, attempt=message.attempt)
        generation = Generation(message.request_id, message.attempt, lambda: self.send(abort))
        self._open[message.request_id] = generation
        self.num_sent_since_stats += 1
        self.send(message)
        return generation

    def send(self, message: GatewayMessage) -> None:
        if self.loss is None:
            self._outbox.append(message)
            self._outbox_filled.set()

    # the three tasks

    async def _write(self) -> str:
        while True:
            await self._outbox_filled.wait()
            self._outbox_filled.clear()
            messages, self._outbox = self._outbox, []
            for frame in frames_of(messages):
                await self._call.write(frame)

    async def _read(self) -> str:
        while True:
            data = await self._call.read()
            if not isinstance(data, bytes):  # grpc.aio.EOF
                return "the engine closed the stream"
            frame = decode_engine_frame(data)
            self._liveness.frame(frame.step, frame.has_work, time.monotonic())
            for number, message in enumerate(frame.messages, 1):
                self._handlers[type(message)](message)
                if number % MESSAGES_AT_ONCE == 0:
                    await asyncio.sleep(0)  # others get their turn between two parts of a large frame

    async def _watch(self) -> str:
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            if reason := self._liveness.loss(time.monotonic(), bool(self._open)):
                return reason

    # what the engine says

    def _on_event(self, event: Event) -> None:
        generation = self._open.get(event.request_id)
        if generation is not None and generation.attempt == event.attempt:
            generation.put(event)

    def _on_end(self, event: Finished | Refused) -> None:
        generation = self._open.get(event.request_id)
        if generation is not None and generation.attempt == event.attempt:
            del self._open[event.request_id]
            generation.put(event)

    def _on_stats(self, stats: Stats) -> None:
        self.stats = stats
        self.num_sent_since_stats = 0

    def _on_description(self, description: Description) -> None:
        self.description = description
        self._described.set()


def _ignore(message: object) -> None:
    """Answers nobody here asked for."""
