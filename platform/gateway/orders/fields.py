"""Fields that chat and text completions share. A field that is absent and one that is null mean the same."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from inference_engine.contract.limits import (
    MAX_BAD_WORD_TOKENS,
    MAX_BAD_WORDS,
    MAX_BIASED_TOKENS,
    MAX_DRAFT_TOKENS,
    MAX_REPETITION_PENALTY,
    MAX_STOP_TOKEN_IDS,
)

Integer64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, Meta(ge=0)]
AtLeastOne = Annotated[int, Meta(ge=1)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
LogitBias = Annotated[dict[str, Annotated[float, Meta(ge=-100, le=100)]], Meta(max_length=MAX_BIASED_TOKENS)]
BadWord = Annotated[list[int], Meta(min_length=1, max_length=MAX_BAD_WORD_TOKENS)]
MAX_CHOICES = 128
"""Of one request, all prompts together."""
NumChoices = Annotated[int, Meta(ge=1, le=MAX_CHOICES)]
WITHOUT_NUL = r"^[^\x00]*\Z"
"""PostgreSQL stores no zero bytes, and these go to the ledger."""
Tag = Annotated[str, Meta(max_length=512, pattern=WITHOUT_NUL)]
Metadata = Annotated[dict[Annotated[str, Meta(max_length=64, pattern=WITHOUT_NUL)], Tag], Meta(max_length=16)]


class StreamOptions(Struct, forbid_unknown_fields=True):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class SpeculativeConfig(Struct, forbid_unknown_fields=True):
    """As vLLM names it, here of one request: guess from the request's own tokens, verify several at once."""

    method: Literal["ngram"]
    num_speculative_tokens: Annotated[int, Meta(ge=1, le=MAX_DRAFT_TOKENS)] = 8


class SharedFields(Struct, forbid_unknown_fields=True, kw_only=True):
    """What shapes the output. neutral.py lists what is only accepted at a neutral value."""

    model: Annotated[str, Meta(min_length=1, max_length=256)]
    max_tokens: AtLeastOne | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Fraction | None = None
    top_k: Annotated[int, Meta(ge=-1, le=2**31 - 1)] | None = None
    min_p: Fraction | None = None
    min_tokens: Count | None = None
    stop: str | list[str] | None = None
    stop_token_ids: Annotated[list[int], Meta(max_length=MAX_STOP_TOKEN_IDS)] | None = None
    seed: Integer64 | None = None
    ignore_eos: bool | None = None
    include_stop_str_in_output: bool | None = None
    skip_special_tokens: bool | None = None
    return_token_ids: bool | None = None
    user: Tag | None = None
    metadata: Metadata | None = None
    service_tier: Literal["auto", "default", "flex", "priority"] | None = None

    n: NumChoices | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    repetition_penalty: Annotated[float, Meta(gt=0, le=MAX_REPETITION_PENALTY)] | None = None
    logit_bias: LogitBias | None = None
    bad_words_ids: Annotated[list[BadWord], Meta(max_length=MAX_BAD_WORDS)] | None = None
    speculative_config: SpeculativeConfig | None = None

    priority: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None

    store: bool | None = None
    prompt_cache_key: Tag | None = None
    safety_identifier: Tag | None = None
