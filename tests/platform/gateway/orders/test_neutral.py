"""Known fields that are not served."""

import pytest
from msgspec import structs

from gateway.chat.body import ChatBody, ChatMessage
from gateway.completions.body import CompletionBody
from gateway.orders.neutral import ACCEPTED, NEUTRAL, NEUTRAL_IN_MESSAGE, check_neutral
from tenants.errors import Denied

SERVED = {
    "model",
    "messages",
    "prompt",
    "max_tokens",
    "max_completion_tokens",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "min_tokens",
    "stop",
    "stop_token_ids",
    "seed",
    "ignore_eos",
    "include_stop_str_in_output",
    "skip_special_tokens",
    "return_token_ids",
    "service_tier",
    "logprobs",
    "top_logprobs",
    "n",
    "best_of",
    "echo",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "logit_bias",
    "bad_words_ids",
    "speculative_config",
    "response_format",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "priority",
}


def names(kind: type) -> set[str]:
    return {field.name for field in structs.fields(kind)}


def test_no_field_is_accepted_and_forgotten() -> None:
    """Every field of a body is served, refused beyond its neutral values, or listed as harmless."""
    every = names(ChatBody) | names(CompletionBody)
    assert every == SERVED | set(NEUTRAL) | {name for name in ACCEPTED if "." not in name}
    assert not SERVED & set(NEUTRAL)


def test_message_fields_are_known_to_the_template_or_refused() -> None:
    assert set(NEUTRAL_IN_MESSAGE) <= names(ChatMessage)


def test_what_may_be_given_is_told_in_json() -> None:
    with pytest.raises(Denied, match="it may only be false or null"):
        check_neutral(ChatBody(model="m", messages=[], store=True), NEUTRAL)
