"""Embeddings in the OpenAPI document."""

from typing import Literal

from msgspec import Struct

from gateway.embeddings.body import EmbeddingsBody
from gateway.openapi.operation import Operation


class EmbeddingObject(Struct, forbid_unknown_fields=True):
    object: Literal["embedding"]
    index: int
    embedding: list[float] | str
    """Text where `encoding_format` is base64: little-endian fp32."""


class EmbeddingUsage(Struct, forbid_unknown_fields=True):
    prompt_tokens: int
    total_tokens: int


class EmbeddingList(Struct, forbid_unknown_fields=True):
    object: Literal["list"]
    data: list[EmbeddingObject]
    model: str
    usage: EmbeddingUsage


OPERATIONS = (
    Operation(
        method="POST",
        path="/v1/embeddings",
        summary="Texts as vectors, by a model that was made for that",
        body=EmbeddingsBody,
        answer=EmbeddingList,
    ),
)
