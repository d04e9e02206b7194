"""`usage` of an answer, for the OpenAPI document."""

from msgspec import Struct


class PromptTokensDetails(Struct, forbid_unknown_fields=True):
    cached_tokens: int


class Usage(Struct, forbid_unknown_fields=True):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails
