"""The other end of an engine's stream, with nothing between a test and the frames."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any

import grpc

from inference_engine.contract.events import Delta, EngineMessage, Finished, Refused, Stats
from inference_engine.contract.limits import MAX_FRAME_BYTES
from inference_engine.contract.requests import GatewayMessage
from inference_engine.contract.wire import METHOD_PATH, EngineFrame, decode_engine_frame, gateway_frame
from polling import until

OPTIONS = [
    ("grpc.max_receive_message_length", MAX_FRAME_BYTES + 1024),
    ("grpc.max_send_message_length", 2 * MAX_FRAME_BYTES),
    ("grpc.use_local_subchannel_pool", 1),
    # 64 KB of flow control instead of 4 MB, so that a gateway that doesn't read is felt soon.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 65_536),
]


class RawGateway:
    """`reads=False`: a gateway that doesn't read until `start_reading`."""

    def __init__(
        self, address: str, *, reads: bool = True, credentials: grpc.ChannelCredentials | None = None
    ) -> None:
        self._channel = (
            grpc.aio.insecure_channel(address, options=OPTIONS)
            if credentials is None
            else grpc.aio.secure_channel(address, credentials, options=OPTIONS)
        )
        self.call: Any = self._channel.stream_stream(METHOD_PATH)()
        self.frames: list[EngineFrame] = []
        self.frame_times: list[float] = []
        self.error: grpc.aio.AioRpcError | None = None
        self.has_ended = False
        self._reads = reads
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "RawGateway":
        if self._reads:
            self.start_reading()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def start_reading(self) -> None:
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            while (data := await self.call.read()) is not grpc.aio.EOF:
                self.frames.append(decode_engine_frame(data))
                self.frame_times.append(time.monotonic())
        except grpc.aio.AioRpcError as error:
            self.error = error
        self.has_ended = True

    async def close(self) -> None:
        self.call.cancel()
        if self._reader is not None:
            self._reader.cancel()
            with suppress(asyncio.CancelledError):
                await self._reader
        await self._channel.close()

    async def send(self, *messages: GatewayMessage) -> None:
        await self.send_bytes(gateway_frame(*messages))

    async def send_bytes(self, data: bytes) -> None:
        await self.call.write(data)

    async def wait_for(self, condition: Callable[[], Any], ceiling_s: float = 60.0) -> Any:
        return await until(condition, ceiling_s=ceiling_s)

    async def wait_ended(self, *request_ids: str, ceiling_s: float = 60.0) -> None:
        await until(lambda: all(self.ending(each) for each in request_ids), ceiling_s=ceiling_s)

    def messages(self, kind: type[Any]) -> list[Any]:
        found: list[EngineMessage] = [message for frame in self.frames for message in frame.messages]
        return [message for message in found if isinstance(message, kind)]

    def tokens(self, request_id: str) -> list[int]:
        deltas = [delta for delta in self.messages(Delta) if delta.request_id == request_id]
        return [token for delta in deltas for token in delta.token_ids]

    def ending(self, request_id: str) -> Finished | Refused | None:
        endings = self.messages(Finished) + self.messages(Refused)
        return next((each for each in endings if each.request_id == request_id), None)

    @property
    def stats(self) -> Stats:
        return next(iter(self.messages(Stats)[::-1]), Stats())
