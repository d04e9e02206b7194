"""Messages in the OpenAPI document."""

from typing import Literal

from msgspec import Struct

from gateway.messages.body import CountTokensBody, MessagesBody
from gateway.openapi.operation import GENERATING, READING, Operation


class MessagesErrorObject(Struct, forbid_unknown_fields=True):
    type: str
    message: str


class MessagesError(Struct, forbid_unknown_fields=True):
    type: Literal["error"]
    error: MessagesErrorObject
    request_id: str


class CountedTokens(Struct, forbid_unknown_fields=True):
    input_tokens: int


OPERATIONS = (
    Operation(
        method="POST",
        path="/v1/messages",
        summary="A message, as Anthropic's clients ask for it",
        body=MessagesBody,
        has_events=True,
        statuses=GENERATING,
        error=MessagesError,
        accepted=frozenset({"cache_control"}),
    ),
    Operation(
        method="POST",
        path="/v1/messages/count_tokens",
        summary="How many tokens a message's prompt has",
        body=CountTokensBody,
        answer=CountedTokens,
        statuses=(400, 408, *READING),
        error=MessagesError,
        accepted=frozenset({"cache_control"}),
    ),
)
