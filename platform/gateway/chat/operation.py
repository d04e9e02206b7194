"""A chat completion in the OpenAPI document."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from gateway.chat.body import ChatBody
from gateway.openapi.operation import Operation
from gateway.orders.neutral import ACCEPTED, NEUTRAL
from gateway.runs.usage_shape import Usage


class ShownFunction(Struct, forbid_unknown_fields=True):
    name: str
    arguments: str


class ShownCall(Struct, forbid_unknown_fields=True):
    id: str
    type: Literal["function"]
    function: ShownFunction


class AnswerMessage(Struct, forbid_unknown_fields=True):
    role: Literal["assistant"]
    content: str | None
    refusal: None
    tool_calls: list[ShownCall] | UnsetType = UNSET


class TopLogprob(Struct, forbid_unknown_fields=True):
    token: str
    logprob: float
    bytes: list[int]


class TokenLogprob(Struct, forbid_unknown_fields=True):
    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list[TopLogprob]


class ChatLogprobs(Struct, forbid_unknown_fields=True):
    content: list[TokenLogprob]
    refusal: None


class ChatChoice(Struct, forbid_unknown_fields=True):
    index: int
    message: AnswerMessage
    logprobs: ChatLogprobs | None
    finish_reason: Literal["stop", "length", "tool_calls"]
    token_ids: list[int] | UnsetType = UNSET


class ChatCompletion(Struct, forbid_unknown_fields=True):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[ChatChoice]
    usage: Usage
    prompt_token_ids: list[int] | UnsetType = UNSET


OPERATIONS = (
    Operation(
        method="POST",
        path="/v1/chat/completions",
        summary="The next message of a conversation",
        body=ChatBody,
        answer=ChatCompletion,
        has_events=True,
        neutral=NEUTRAL,
        accepted=ACCEPTED,
    ),
)
