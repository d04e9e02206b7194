"""One open socket: responses side by side, one after the other where they share a stream id.

Each response is a task of its own, so a cancel or a close acts at once, whatever is being sent. A client that
doesn't read blocks those sends: then the engine's queues fill and end the responses (fleet/generation.py), or
the watch closes the socket.
"""

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable

import structlog

from fleet.cancelling import cancelled
from fleet.failures import GenerationFailed
from gateway.errors import internal_error
from gateway.live.closing import CloseCode
from gateway.live.handshake import Opening
from gateway.live.incoming import CancelMessage, CreateMessage, read_message, stream_of
from gateway.live.lane import Job, Lane
from gateway.live.outgoing import error_message
from gateway.live.sink import SocketSink
from gateway.responses.ids import response_id_of
from gateway.responses.request import read_request
from gateway.responses.respond import respond
from gateway.responses.running import Making
from gateway.runs.journey import Caller
from gateway.services import Services
from gateway.transport.exchange import Send
from inference_engine.contract.codes import Code
from tenants.errors import Denied

log = structlog.get_logger("gateway")

MAX_STREAMS = 32
MAX_WAITING = 64
MAX_WAITING_BYTES = 8 * 1024 * 1024
LAST_WORDS_S = 1.0
CLEAN_UP_S = 3.0


class LiveSocket:
    def __init__(
        self, services: Services, opening: Opening, send: Send, give_up: Callable[[], object]
    ) -> None:
        """`give_up` ends the connection of a client that can't even be told goodbye."""
        self.principal = opening.principal
        self.address = opening.address
        self.opened_at = time.monotonic()
        self.sending_since: float | None = None
        """When the oldest send that is still blocked began."""
        self._services = services
        self._send = send
        self._give_up = give_up
        self._lanes: dict[str | None, Lane] = {}
        self.is_closing = False
        self._is_closed = False

    # what the client says

    async def take(self, data: bytes) -> None:
        """Answers at once; the work goes on beside it."""
        try:
            if self.is_closing:
                return
            message = read_message(data)
            if isinstance(message, CreateMessage):
                self._create(message, len(data))
            else:
                self._cancel(message)
        except Denied as denied:
            await self.tell(denied, stream_of(data))

    def _create(self, message: CreateMessage, num_bytes: int) -> None:
        """Raises Denied: QUEUE_FULL."""
        lane = self._lanes.get(message.stream_id)
        self._check_room(lane, num_bytes)
        if lane is None:
            lane = Lane(self._work, lambda: self._lanes.pop(message.stream_id, None))
            self._lanes[message.stream_id] = lane
        lane.add(Job(message, secrets.token_hex(12), num_bytes))

    def _check_room(self, lane: Lane | None, num_bytes: int) -> None:
        lanes = self._lanes.values()
        if lane is None and len(lanes) >= MAX_STREAMS:
            message = f"At most {MAX_STREAMS} streams run on one socket at once."
            raise Denied(Code.QUEUE_FULL, message, retry_after_s=1.0)
        is_full = sum(one.num_waiting for one in lanes) >= MAX_WAITING
        if is_full or sum(one.num_waiting_bytes for one in lanes) + num_bytes > MAX_WAITING_BYTES:
            message = f"More than {MAX_WAITING} requests, or too many bytes of them, wait on this socket."
            raise Denied(Code.QUEUE_FULL, message, retry_after_s=1.0)

    def _cancel(self, message: CancelMessage) -> None:
        """Raises Denied: NOT_FOUND."""
        for stream_id, lane in self._lanes.items():
            job = lane.running
            if job is None or not _is_meant(message, stream_id, job):
                continue
            job.is_cancelled = True
            making = self._making(job)
            if making is not None:
                making.cancel()
            elif lane.task is not None:
                lane.task.cancel()
            return
        raise Denied(Code.NOT_FOUND, "No such response is being made on this socket.", param="response_id")

    def _making(self, job: Job) -> Making | None:
        return self._services.running.find(self.principal.tenant_id, response_id_of(job.number))

    # the work

    async def _work(self, job: Job) -> None:
        stream_id = job.message.stream_id
        try:
            await self._respond(job)
        except Denied as denied:
            await self.tell(denied, stream_id)
        except asyncio.CancelledError:
            if not job.is_cancelled or self.is_closing:
                raise
            await self.tell(
                Denied(Code.CLIENT_GONE, "The response was cancelled before it began."), stream_id
            )
        except Exception:
            log.exception("socket_request_broke", request_id=f"req_{job.number}")
            await self.tell(internal_error(), stream_id)

    async def _respond(self, job: Job) -> None:
        message = job.message
        request, description = await read_request(self._services, self.principal, message, job.number)
        caller = Caller(self.principal, f"req_{job.number}", self.address)
        sink = SocketSink(self.send, message.stream_id)
        answer = await respond(self._services, caller, request, description, sink)
        if answer.failed_with is Code.SLOW_READER:
            await self.close(CloseCode.SLOW_READER, Denied(Code.SLOW_READER, "The answers were not read."))

    # what the client is told

    async def send(self, data: bytes) -> None:
        """Blocks while the client's connection is full. Raises GenerationFailed once nobody is there."""
        if self._is_closed:
            raise GenerationFailed(Code.CLIENT_GONE, "The socket is closed.")
        self.sending_since = self.sending_since or time.monotonic()
        try:
            await self._send({"type": "websocket.send", "text": data.decode()})
        except OSError:
            self._is_closed = True
            raise GenerationFailed(Code.CLIENT_GONE, "The client is gone.") from None
        self.sending_since = None

    async def tell(self, denied: Denied, stream_id: str | None = None) -> None:
        """As far as somebody is there."""
        with contextlib.suppress(GenerationFailed):
            await self.send(error_message(denied, stream_id))

    # the end

    async def close(self, code: CloseCode, reason: Denied) -> None:
        """The responses end with `reason`, each with its last events, as far as the client still reads."""
        if self.is_closing:
            return
        self.is_closing = True
        own = asyncio.current_task()
        others = [lane for lane in self._lanes.values() if lane.task is not own]
        for lane in self._lanes.values():
            lane.clear()
        for lane in others:
            self._end(lane, reason.code)
        tasks = {lane.task for lane in others if lane.task is not None}
        if tasks:
            await asyncio.wait(tasks, timeout=LAST_WORDS_S)
        await self._say_goodbye(code, reason)

    def _end(self, lane: Lane, code: Code) -> None:
        making = None if lane.running is None else self._making(lane.running)
        if (making is None or not making.end(code)) and lane.task is not None:
            lane.task.cancel()

    async def _say_goodbye(self, code: CloseCode, reason: Denied) -> None:
        try:
            async with asyncio.timeout(LAST_WORDS_S):
                await self.tell(reason)
                self._is_closed = True
                await self._send({"type": "websocket.close", "code": int(code)})
        except (TimeoutError, OSError):
            log.info("socket_closed_unheard", code=int(code))
            self._is_closed = True
            self._give_up()

    async def gone(self, why: Code) -> None:
        """The connection is closed: whatever is being made is given up."""
        self.is_closing = True
        tasks = [lane.task for lane in self._lanes.values() if lane.task is not None]
        for lane in self._lanes.values():
            lane.clear()
        await asyncio.gather(*(cancelled(task, CLEAN_UP_S, why) for task in tasks))


def _is_meant(message: CancelMessage, stream_id: str | None, job: Job) -> bool:
    if message.response_id is not None:
        return message.response_id == response_id_of(job.number)
    return message.stream_id == stream_id
