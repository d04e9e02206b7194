"""POST /tokenize and /detokenize."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from gateway.chat.body import ChatMessage
from gateway.chat.tools import Tools

ModelName = Annotated[str, Meta(min_length=1, max_length=256)]


class TokenizeBody(Struct, forbid_unknown_fields=True, kw_only=True):
    """A text, or a conversation as the model's chat template writes it."""

    model: ModelName | None = None
    prompt: str | None = None
    messages: list[ChatMessage] | None = None
    tools: Tools | None = None
    add_special_tokens: bool | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    return_token_strs: bool | None = None


class DetokenizeBody(Struct, forbid_unknown_fields=True, kw_only=True):
    model: ModelName | None = None
    tokens: list[int]


class Tokenized(Struct):
    count: int
    max_model_len: int
    tokens: list[int]
    token_strs: list[str] | None


class Detokenized(Struct):
    prompt: str


NEUTRAL_IN_TOKENIZE: dict[str, tuple[Any, ...]] = {"continue_final_message": (False,)}
