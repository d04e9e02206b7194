"""Frames: what crosses the gRPC stream between one gateway and one engine.

One bidirectional stream (`METHOD`) per pair; every gRPC message is one msgpack frame. The engine sends one
frame a step and session. Unknown fields are ignored and absent ones take their defaults, so version N talks
to N - 1; anything older is answered with `version_mismatch` and the end of the stream.
"""

from typing import TypeVar

from msgspec import Struct, msgpack

from .codes import Code
from .events import EngineMessage
from .limits import MAX_FRAME_BYTES
from .requests import GatewayMessage

PROTOCOL_VERSION = 1
OLDEST_VERSION = 1
SERVICE = "octavo.Engine"
METHOD = "Session"
METHOD_PATH = f"/{SERVICE}/{METHOD}"


class GatewayFrame(Struct, frozen=True, omit_defaults=True, kw_only=True):
    version: int = 0
    """0 when absent, which no side accepts."""
    messages: list[GatewayMessage] = []


class EngineFrame(Struct, frozen=True, omit_defaults=True, kw_only=True):
    version: int = 0
    step: int = 0
    """Steps the loop has completed."""
    has_work: bool = False
    """Something waits or runs: the step counter must move."""
    messages: list[EngineMessage] = []


class FrameError(ValueError):
    """A frame that can't be read: too large, not msgpack, of a wrong shape, of a version not spoken here."""

    def __init__(self, message: str, code: Code = Code.INVALID_FRAME) -> None:
        super().__init__(message)
        self.code = code


FrameT = TypeVar("FrameT", GatewayFrame, EngineFrame)

_gateway_decoder = msgpack.Decoder(GatewayFrame)
_engine_decoder = msgpack.Decoder(EngineFrame)
_encoder = msgpack.Encoder()


def gateway_frame(*messages: GatewayMessage) -> bytes:
    return _encoder.encode(GatewayFrame(version=PROTOCOL_VERSION, messages=list(messages)))


def engine_frame(messages: list[EngineMessage], *, step: int, has_work: bool) -> bytes:
    return _encoder.encode(
        EngineFrame(version=PROTOCOL_VERSION, step=step, has_work=has_work, messages=messages)
    )


def decode_gateway_frame(data: bytes) -> GatewayFrame:
    """Raises FrameError."""
    return _checked(_gateway_decoder, data)


def decode_engine_frame(data: bytes) -> EngineFrame:
    """Raises FrameError."""
    return _checked(_engine_decoder, data)


def check_size(data: bytes) -> None:
    """Raises FrameError."""
    if len(data) > MAX_FRAME_BYTES:
        raise FrameError(f"frame of {len(data)} bytes, at most {MAX_FRAME_BYTES}")


def check_version(version: int) -> None:
    """Raises FrameError. A peer may be one version older or one newer than this side."""
    if not OLDEST_VERSION <= version <= PROTOCOL_VERSION + 1:
        understood = f"{OLDEST_VERSION} to {PROTOCOL_VERSION + 1}"
        raise FrameError(f"protocol version {version}, understood here: {understood}", Code.VERSION_MISMATCH)


def _checked(decoder: msgpack.Decoder[FrameT], data: bytes) -> FrameT:
    check_size(data)
    try:
        frame = decoder.decode(data)
    except ValueError as error:  # msgspec's DecodeError and ValidationError
        raise FrameError(str(error)) from error
    check_version(frame.version)
    return frame
