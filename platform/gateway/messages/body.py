"""POST /v1/messages and /v1/messages/count_tokens."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct

from gateway.orders.fields import AtLeastOne, Count, Fraction, Integer64, SharedFields, Tag
from gateway.orders.tools import MAX_TOOLS

ToolName = Annotated[str, Meta(pattern=r"^[a-zA-Z0-9_-]{1,128}\Z")]
Cache = dict[str, Any] | None
"""cache_control: prefixes are cached whatever it says."""


class TextBlock(Struct, forbid_unknown_fields=True, tag_field="type", tag="text", kw_only=True):
    text: str
    cache_control: Cache = None
    citations: Annotated[list[Any], Meta(max_length=0)] | None = None


class ToolUseBlock(Struct, forbid_unknown_fields=True, tag_field="type", tag="tool_use", kw_only=True):
    id: Annotated[str, Meta(max_length=256)]
    name: ToolName
    input: dict[str, Any]
    cache_control: Cache = None


class ToolResultBlock(Struct, forbid_unknown_fields=True, tag_field="type", tag="tool_result", kw_only=True):
    tool_use_id: Annotated[str, Meta(max_length=256)]
    content: str | list[TextBlock] | None = None
    is_error: bool | None = None
    cache_control: Cache = None


class MessageBody(Struct, forbid_unknown_fields=True, kw_only=True):
    role: Literal["user", "assistant"]
    content: str | list[TextBlock | ToolUseBlock | ToolResultBlock]


class ToolBody(Struct, forbid_unknown_fields=True, kw_only=True):
    name: ToolName
    input_schema: dict[str, Any]
    description: str | None = None
    type: Literal["custom"] | None = None
    strict: bool | None = None
    """Forced calls follow the schema whatever it says; others are the model's own."""
    cache_control: Cache = None


class AutoChoice(Struct, forbid_unknown_fields=True, tag_field="type", tag="auto"):
    disable_parallel_tool_use: bool | None = None


class AnyChoice(Struct, forbid_unknown_fields=True, tag_field="type", tag="any"):
    disable_parallel_tool_use: bool | None = None


class OneChoice(Struct, forbid_unknown_fields=True, tag_field="type", tag="tool"):
    name: ToolName
    disable_parallel_tool_use: bool | None = None


class NoChoice(Struct, forbid_unknown_fields=True, tag_field="type", tag="none"):
    pass


class JsonSchemaOutput(Struct, forbid_unknown_fields=True, tag_field="type", tag="json_schema"):
    schema: Raw


class OutputConfig(Struct, forbid_unknown_fields=True):
    format: JsonSchemaOutput | None = None


class MessageMetadata(Struct, forbid_unknown_fields=True):
    user_id: Tag | None = None


class NoThinking(Struct, forbid_unknown_fields=True, tag_field="type", tag="disabled"):
    pass


class CountTokensBody(Struct, forbid_unknown_fields=True, kw_only=True):
    """What makes a prompt."""

    model: Annotated[str, Meta(min_length=1, max_length=256)]
    messages: list[MessageBody]
    system: str | list[TextBlock] | None = None
    tools: Annotated[list[ToolBody], Meta(max_length=MAX_TOOLS)] | None = None
    tool_choice: AutoChoice | AnyChoice | OneChoice | NoChoice | None = None
    thinking: NoThinking | None = None
    output_config: OutputConfig | None = None
    cache_control: Cache = None


class MessagesBody(CountTokensBody, forbid_unknown_fields=True, kw_only=True):
    max_tokens: AtLeastOne
    stream: bool | None = None
    stop_sequences: list[str] | None = None
    temperature: Fraction | None = None
    top_p: Fraction | None = None
    top_k: Count | None = None
    metadata: MessageMetadata | None = None
    service_tier: Literal["auto", "standard_only"] | None = None
    seed: Integer64 | None = None
    ignore_eos: bool | None = None

    def sampling_fields(self) -> SharedFields:
        """What it has in common with chat and text completions."""
        return SharedFields(
            model=self.model,
            stream=self.stream,
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            stop=self.stop_sequences,
            seed=self.seed,
            ignore_eos=self.ignore_eos,
            user=self.metadata.user_id if self.metadata else None,
            service_tier="default" if self.service_tier == "standard_only" else "auto",
        )
