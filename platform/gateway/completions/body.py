"""POST /v1/completions."""

from typing import Annotated

from msgspec import Meta

from gateway.orders.fields import NumChoices, SharedFields

MAX_LOGPROBS = 5


class CompletionBody(SharedFields, forbid_unknown_fields=True, kw_only=True):
    prompt: str | list[str | int | list[int]]
    """One text, one prompt of token ids, or a list of either; prompts.py tells which."""
    logprobs: Annotated[int, Meta(ge=0, le=MAX_LOGPROBS)] | None = None

    echo: bool | None = None
    best_of: NumChoices | None = None
    suffix: str | None = None
