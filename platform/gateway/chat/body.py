"""POST /v1/chat/completions."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from gateway.chat.tools import Choice, ToolCall, Tools
from gateway.orders.fields import AtLeastOne, SharedFields
from gateway.orders.response_format import ResponseFormat
from gateway.orders.tools import MAX_TOOLS
from inference_engine.contract.limits import MAX_TOP_LOGPROBS


class ChatMessage(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Contents are looked at by text/, which knows what a chat template can take."""

    role: Literal["developer", "system", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None = None
    name: Annotated[str, Meta(max_length=64)] | None = None
    tool_calls: Annotated[list[ToolCall], Meta(max_length=MAX_TOOLS)] | None = None
    tool_call_id: str | None = None
    refusal: str | None = None
    annotations: list[Any] | None = None
    audio: dict[str, Any] | None = None
    function_call: dict[str, Any] | None = None


class ChatBody(SharedFields, forbid_unknown_fields=True, kw_only=True):
    messages: list[ChatMessage]
    max_completion_tokens: AtLeastOne | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=MAX_TOP_LOGPROBS)] | None = None

    response_format: ResponseFormat | None = None
    tools: Tools | None = None
    tool_choice: Choice | None = None
    parallel_tool_calls: bool | None = None
    functions: list[Any] | None = None
    function_call: str | dict[str, Any] | None = None
    modalities: list[str] | None = None
    audio: dict[str, Any] | None = None
    prediction: dict[str, Any] | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    web_search_options: dict[str, Any] | None = None
