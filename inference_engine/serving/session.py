"""One gateway's stream, on the asyncio side: frames into the loop's inbox, its outbox into frames."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import structlog

from inference_engine.contract.codes import Code
from inference_engine.contract.events import Description, EngineMessage, Refused
from inference_engine.contract.requests import Describe, Drain, GatewayMessage
from inference_engine.contract.wire import FrameError, engine_frame

from .frames import ReadFrame, read_frame
from .inbox import Inbox, Received, Rejected
from .outbox import Outbox
from .progress import Progress

log = structlog.get_logger(__name__)

_STATUS = {Code.VERSION_MISMATCH: grpc.StatusCode.FAILED_PRECONDITION}
_BACKPRESSURE_POLL_S = 0.01
_LAST_WORD_S = 1.0


class Session:
    def __init__(
        self,
        outbox: Outbox,
        inbox: Inbox,
        *,
        progress: Callable[[], Progress],
        description: Description,
        drain: Callable[[float], None],
    ) -> None:
        self.outbox = outbox
        self._inbox = inbox
        self._progress = progress
        self._description = description
        self._drain = drain
        self._wake = asyncio.Event()
        self._is_beat_due = True
        self._is_description_due = False
        self._is_writing = False
        self._rejection: FrameError | None = None

    @property
    def is_flushed(self) -> bool:
        return not len(self.outbox) and not self._is_writing

    def wake(self) -> None:
        self._wake.set()

    def beat(self) -> None:
        """Some frame is due, whatever the loop does: the next one written carries Stats."""
        self._is_beat_due = True
        self._wake.set()

    async def serve(self, frames: AsyncIterator[bytes], context: Any) -> None:
        """Until a side ends the stream. A frame that can't be read ends it with a last word and a status."""
        writer = asyncio.create_task(self._write(context))
        reader = asyncio.create_task(self._read(frames))
        try:
            await asyncio.wait((reader, writer), return_when=asyncio.FIRST_COMPLETED)
            if self._rejection is not None:
                await asyncio.wait((writer,), timeout=_LAST_WORD_S)
        finally:
            reader.cancel()
            writer.cancel()
            results = await asyncio.gather(reader, writer, return_exceptions=True)
        for error in results:
            if isinstance(error, Exception):
                log.warning("session_broken", session_id=self.outbox.session_id, error=repr(error))
        if self._rejection is not None:
            status = _STATUS.get(self._rejection.code, grpc.StatusCode.INVALID_ARGUMENT)
            await context.abort(status, str(self._rejection))

    async def _read(self, frames: AsyncIterator[bytes]) -> None:
        async for data in frames:
            try:
                frame = read_frame(data)
            except FrameError as error:
                return self._reject(error)
            self._pass_on(frame)
            while self.outbox.is_over or self._inbox.is_full:  # noqa: ASYNC110 - another thread changes it
                await asyncio.sleep(_BACKPRESSURE_POLL_S)

    def _reject(self, error: FrameError) -> None:
        """The writer says why and ends: only one task may ever write."""
        self._rejection = error
        self._wake.set()

    def _pass_on(self, frame: ReadFrame) -> None:
        """What came in one frame reaches the loop in one turn."""
        session_id, received_at = self.outbox.session_id, time.monotonic()
        for_loop = [message for message in frame.messages if not self._answers(message)]
        received = [Received(session_id, message, received_at) for message in for_loop]
        self._inbox.put(*received, *(Rejected(session_id, refused) for refused in frame.refused))

    def _answers(self, message: GatewayMessage) -> bool:
        """Whether the message is no affair of the loop's; then it is done."""
        if isinstance(message, Describe):
            self._is_description_due = True
            self._wake.set()
        elif isinstance(message, Drain):
            self._drain(message.deadline_ms / 1000)
        else:
            return False
        return True

    async def _write(self, context: Any) -> None:
        while self._rejection is None:
            await self._wake.wait()
            self._wake.clear()
            self._is_writing = True
            while self._rejection is None and (frame := self._next_frame()) is not None:
                await context.write(frame)
            self._is_writing = False
        last_word = Refused(request_id="", code=self._rejection.code, message=str(self._rejection))
        await context.write(self._frame([last_word]))

    def _next_frame(self) -> bytes | None:
        batch = self.outbox.take()
        extra = self._due_messages()
        if batch is not None:
            return engine_frame(batch.messages + extra, step=batch.step, has_work=batch.has_work)
        return self._frame(extra) if extra else None

    def _due_messages(self) -> list[EngineMessage]:
        due: list[EngineMessage] = []
        if self._is_beat_due:
            due.append(self._progress().stats)
        if self._is_description_due:
            due.append(self._description)
        self._is_beat_due = self._is_description_due = False
        return due

    def _frame(self, messages: list[EngineMessage]) -> bytes:
        progress = self._progress()
        return engine_frame(messages, step=progress.step, has_work=progress.has_work)
