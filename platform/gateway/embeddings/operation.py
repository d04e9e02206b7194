"""Embeddings in the OpenAPI document."""

from gateway.embeddings.body import EmbeddingsBody
from gateway.openapi.operation import READING, Operation

OPERATIONS = (
    Operation(
        method="POST",
        path="/v1/embeddings",
        summary="Refused: models that are served here generate text",
        body=EmbeddingsBody,
        statuses=(400, 408, *READING),
    ),
)
