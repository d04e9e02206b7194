"""A text completion in the OpenAPI document."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from gateway.completions.body import CompletionBody
from gateway.openapi.operation import Operation
from gateway.orders.neutral import ACCEPTED, NEUTRAL
from gateway.runs.usage_shape import Usage


class TextLogprobs(Struct, forbid_unknown_fields=True):
    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None]
    text_offset: list[int]


class TextChoice(Struct, forbid_unknown_fields=True):
    index: int
    text: str
    logprobs: TextLogprobs | None
    finish_reason: Literal["stop", "length"]
    prompt_token_ids: list[int] | UnsetType = UNSET
    token_ids: list[int] | UnsetType = UNSET


class TextCompletion(Struct, forbid_unknown_fields=True):
    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[TextChoice]
    usage: Usage


OPERATIONS = (
    Operation(
        method="POST",
        path="/v1/completions",
        summary="How a text goes on",
        body=CompletionBody,
        answer=TextCompletion,
        has_events=True,
        neutral=NEUTRAL,
        accepted=ACCEPTED,
    ),
)
