"""Vectors as they come from an engine, and as a client wants them."""

import base64
import math
import struct

from gateway.runs.chunks import encode
from inference_engine.contract.events import Embedding


def shortened(vector: bytes, dimensions: int | None, embedding: Embedding) -> bytes:
    """The first so many numbers of a vector of little-endian fp32, of length 1 where the model's are."""
    if dimensions is None or dimensions == embedding.size:
        return vector
    cut = vector[: 4 * dimensions]
    if not embedding.is_normalized:
        return cut
    numbers = _numbers(cut)
    length = math.sqrt(math.fsum(number * number for number in numbers))
    if not length:
        return cut
    return struct.pack(f"<{dimensions}f", *[number / length for number in numbers])


def shown(vector: bytes, *, is_base64: bool) -> bytes:
    """As JSON: a list of numbers, or the very bytes in base64."""
    return encode(base64.b64encode(vector).decode() if is_base64 else _numbers(vector))


def _numbers(vector: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(vector) // 4}f", vector)
