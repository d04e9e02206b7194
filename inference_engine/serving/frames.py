"""Reading a gateway's frames so that one unreadable message does not end everybody's session."""

from dataclasses import dataclass, field

import msgspec
import structlog
from msgspec import Struct, msgpack

from inference_engine.contract.codes import Code
from inference_engine.contract.events import Refused
from inference_engine.contract.limits import MAX_ID_LENGTH
from inference_engine.contract.requests import GatewayMessage
from inference_engine.contract.wire import FrameError, check_size, check_version, decode_gateway_frame

log = structlog.get_logger(__name__)


class _RawFrame(Struct):
    version: int = 0
    messages: list[msgspec.Raw] = []


class _Heading(Struct):
    type: str
    request_id: str = ""
    attempt: int = 0


@dataclass(slots=True)
class ReadFrame:
    messages: list[GatewayMessage] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)


_raw_frames = msgpack.Decoder(_RawFrame)
_messages = msgpack.Decoder(GatewayMessage)
_headings = msgpack.Decoder(_Heading)


def read_frame(data: bytes) -> ReadFrame:
    """Raises FrameError where the frame as a whole can't be read; a bad Generate in it becomes a Refused."""
    try:
        return ReadFrame(decode_gateway_frame(data).messages)
    except FrameError as error:
        if error.code is not Code.INVALID_FRAME:
            raise
        return _read_one_by_one(data, error)


def _read_one_by_one(data: bytes, cause: FrameError) -> ReadFrame:
    check_size(data)
    try:
        raw_frame = _raw_frames.decode(data)
        check_version(raw_frame.version)
        frame = ReadFrame()
        for raw in raw_frame.messages:
            _read_message(raw, frame)
    except msgspec.DecodeError as error:
        raise cause from error
    return frame


def _read_message(raw: msgspec.Raw, frame: ReadFrame) -> None:
    try:
        frame.messages.append(_messages.decode(raw))
    except msgspec.ValidationError as error:
        heading = _headings.decode(raw)
        log.warning(
            "message_not_read",
            type=heading.type,
            request_id=heading.request_id[:MAX_ID_LENGTH],
            error=str(error),
        )
        if heading.type == "generate":
            frame.refused.append(
                Refused(
                    request_id=heading.request_id,
                    attempt=heading.attempt,
                    code=Code.INVALID_REQUEST,
                    message=str(error),
                )
            )
