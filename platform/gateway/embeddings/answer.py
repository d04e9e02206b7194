"""The answer to a request for embeddings, as JSON."""

import asyncio
from collections.abc import Sequence

from gateway.embeddings.order import EmbeddingOrder
from gateway.embeddings.vectors import shortened, shown
from gateway.runs.chunks import encode


async def answer_of(order: EmbeddingOrder, vectors: Sequence[bytes]) -> bytes:
    """Put together piece by piece: thousands of vectors are tens of megabytes, and others want their turn."""
    pieces: list[bytes] = []
    for index, vector in enumerate(vectors):
        cut = shortened(vector, order.dimensions, order.embedding)
        opening = b'{"object":"embedding","index":%d,"embedding":' % index
        pieces.append(opening + shown(cut, is_base64=order.is_base64) + b"}")
        await asyncio.sleep(0)
    usage = {"prompt_tokens": order.prompt_tokens, "total_tokens": order.prompt_tokens}
    closing = b'],"model":%b,"usage":%b}' % (encode(order.model), encode(usage))
    return b'{"object":"list","data":[' + b",".join(pieces) + closing
