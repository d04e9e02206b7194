"""What a client may say on a socket."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from gateway.responses.body import ResponseBody
from gateway.transport.strict_json import StrictDecoder
from inference_engine.contract.codes import Code
from tenants.errors import Denied

StreamId = Annotated[str, Meta(min_length=1, max_length=256)]

CREATE, CANCEL = "response.create", "response.cancel"


class CreateMessage(ResponseBody, forbid_unknown_fields=True, kw_only=True):
    type: Literal["response.create"]
    stream_id: StreamId | None = None


class CancelMessage(Struct, forbid_unknown_fields=True, kw_only=True):
    """The response, or whichever runs on the stream; without either the stream that has no id."""

    type: Literal["response.cancel"]
    response_id: Annotated[str, Meta(max_length=64)] | None = None
    stream_id: StreamId | None = None
    event_id: Annotated[str, Meta(max_length=512)] | None = None


class Envelope(Struct):
    type: Any = None
    stream_id: Any = None


_envelope = msgspec.json.Decoder(Envelope)
_decoders: dict[str, StrictDecoder] = {
    CREATE: StrictDecoder(CreateMessage),
    CANCEL: StrictDecoder(CancelMessage),
}


def stream_of(data: bytes) -> str | None:
    """The stream that a message is of, as far as it can be read."""
    try:
        stream_id = _envelope.decode(data).stream_id
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return stream_id if isinstance(stream_id, str) and len(stream_id) <= 256 else None


def read_message(data: bytes) -> CreateMessage | CancelMessage:
    """Raises Denied."""
    message: CreateMessage | CancelMessage = _decoder_of(data).decode(data)
    if isinstance(message, CreateMessage):
        if message.stream is False:
            raise Denied(Code.INVALID_REQUEST, "On a socket 'stream' is always true.", param="stream")
        message.stream = True
    return message


def _decoder_of(data: bytes) -> StrictDecoder:
    try:
        kind = _envelope.decode(data).type
    except (msgspec.MsgspecError, ValueError, RecursionError):
        kind = CREATE  # its decoder says what is wrong
    decoder = _decoders.get(kind) if isinstance(kind, str) else None
    if decoder is None:
        known = " or ".join(f"'{name}'" for name in _decoders)
        raise Denied(Code.INVALID_REQUEST, f"The 'type' of a message is {known}.", param="type")
    return decoder
