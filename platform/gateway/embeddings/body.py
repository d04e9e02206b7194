"""POST /v1/embeddings."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gateway.orders.fields import AtLeastOne, Tag


class EmbeddingsBody(Struct, forbid_unknown_fields=True, kw_only=True):
    model: Annotated[str, Meta(min_length=1, max_length=256)]
    input: str | list[str | int | list[int]]
    """One text, one list of token ids, or a list of either."""
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: AtLeastOne | None = None
    user: Tag | None = None
    service_tier: Literal["auto", "default", "flex", "priority"] | None = None
