"""POST /v1/responses, and a socket's response.create."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from gateway.orders.fields import (
    AtLeastOne,
    Count,
    Fraction,
    Integer64,
    Metadata,
    SharedFields,
    SpeculativeConfig,
    Tag,
)
from gateway.responses.text_format import TextSettings
from gateway.responses.tools import Choice, Tools
from inference_engine.contract.limits import MAX_TOP_LOGPROBS

LOGPROBS = "message.output_text.logprobs"


class ResponseStreamOptions(Struct, forbid_unknown_fields=True):
    include_obfuscation: bool | None = None


class ResponseBody(Struct, forbid_unknown_fields=True, kw_only=True):
    """Items are looked at by items.py; NEUTRAL_IN_RESPONSES lists what is not served."""

    model: Annotated[str, Meta(min_length=1, max_length=256)]
    input: str | list[dict[str, Any]]
    instructions: str | None = None
    max_output_tokens: AtLeastOne | None = None
    stream: bool | None = None
    stream_options: ResponseStreamOptions | None = None
    store: bool | None = None
    previous_response_id: Annotated[str, Meta(max_length=64)] | None = None
    tools: Tools | None = None
    tool_choice: Choice | None = None
    parallel_tool_calls: bool | None = None
    text: TextSettings | None = None
    metadata: Metadata | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Fraction | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=MAX_TOP_LOGPROBS)] | None = None
    include: list[Literal["message.output_text.logprobs"]] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    user: Tag | None = None
    safety_identifier: Tag | None = None
    prompt_cache_key: Tag | None = None
    service_tier: Literal["auto", "default", "flex", "priority"] | None = None

    top_k: Annotated[int, Meta(ge=-1, le=2**31 - 1)] | None = None
    min_p: Fraction | None = None
    min_tokens: Count | None = None
    stop: str | list[str] | None = None
    seed: Integer64 | None = None
    ignore_eos: bool | None = None
    speculative_config: SpeculativeConfig | None = None

    background: bool | None = None
    conversation: Any = None
    prompt: dict[str, Any] | None = None
    reasoning: dict[str, Any] | None = None
    max_tool_calls: int | None = None
    context_management: list[Any] | None = None
    prompt_cache_retention: str | None = None

    def sampling_fields(self) -> SharedFields:
        """What it has in common with chat and text completions."""
        return SharedFields(
            model=self.model,
            stream=self.stream,
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            min_p=self.min_p,
            min_tokens=self.min_tokens,
            stop=self.stop,
            seed=self.seed,
            ignore_eos=self.ignore_eos,
            speculative_config=self.speculative_config,
            user=self.user,
            metadata=self.metadata,
            service_tier=self.service_tier,
        )


NEUTRAL_IN_RESPONSES: dict[str, tuple[Any, ...]] = {
    "background": (False,),
    "conversation": (),
    "prompt": (),
    "reasoning": ({}, {"effort": None}, {"effort": "none"}, {"effort": None, "summary": None}),
    "max_tool_calls": (),
    "context_management": ([],),
    "prompt_cache_retention": ("in_memory",),
}
