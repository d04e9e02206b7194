"""One stream's reader and writer, with a context that writes as slowly as the test says."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc

from inference_engine.contract.codes import Code
from inference_engine.contract.events import Delta, Refused
from inference_engine.contract.wire import decode_engine_frame
from inference_engine.serving.inbox import Inbox
from inference_engine.serving.outbox import Batch, Outbox
from inference_engine.serving.progress import Progress
from inference_engine.serving.session import Session
from stand_ins.golden_frames import FROM_ENGINE

DESCRIPTION: Any = FROM_ENGINE["description"]


class SlowContext:
    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.began = asyncio.Event()
        self.status: grpc.StatusCode | None = None

    async def write(self, frame: bytes) -> None:
        self.began.set()
        await asyncio.sleep(0.05)
        self.written.append(frame)

    async def abort(self, status: grpc.StatusCode, message: str) -> None:
        self.status = status


async def test_a_last_word_does_not_wait_behind_a_backlog() -> None:
    outbox = Outbox(1, max_frames=1000, max_tokens=1000)
    for step in range(500):
        outbox.put(Batch([Delta(request_id="r", token_ids=[5])], 1, step, True))
    session = Session(outbox, Inbox(), progress=Progress, description=DESCRIPTION, drain=lambda _: None)
    context = SlowContext()

    async def frames() -> AsyncIterator[bytes]:
        await context.began.wait()
        yield b"\xc1"

    session.wake()
    await asyncio.wait_for(session.serve(frames(), context), 60)
    [last] = decode_engine_frame(context.written[-1]).messages
    assert isinstance(last, Refused) and last.code is Code.INVALID_FRAME
    assert context.status is grpc.StatusCode.INVALID_ARGUMENT
