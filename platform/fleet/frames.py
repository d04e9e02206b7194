"""Messages to an engine, packed into as few frames as the size limit allows."""

from collections.abc import Iterator

from inference_engine.contract.limits import MAX_FRAME_BYTES
from inference_engine.contract.requests import GatewayMessage, Generate
from inference_engine.contract.wire import gateway_frame

BYTES_PER_TOKEN = 5
"""The most that msgpack needs for a token id below 2^32."""
MESSAGE_BYTES = 4096
"""More than anything but the token ids of a message needs (a constraint's source is counted apart)."""


def frames_of(messages: list[GatewayMessage]) -> Iterator[bytes]:
    """Encoded frames, in order, each safely under MAX_FRAME_BYTES unless one message alone is larger."""
    batch: list[GatewayMessage] = []
    size = 0
    for message in messages:
        cost = largest_size(message)
        if batch and size + cost > MAX_FRAME_BYTES:
            yield gateway_frame(*batch)
            batch, size = [], 0
        batch.append(message)
        size += cost
    if batch:
        yield gateway_frame(*batch)


def largest_size(message: GatewayMessage) -> int:
    if type(message) is not Generate:
        return MESSAGE_BYTES
    source = len(message.constraint.source.encode()) if message.constraint else 0
    return MESSAGE_BYTES + source + BYTES_PER_TOKEN * (len(message.prompt_ids) + len(message.output_ids))
