"""Whatever clients write, a prompt's control tokens are the template's, and its text is all there."""

import json
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from stand_ins.tiny_text import CHATML, byte_level_tokenizer
from text.chat_prompt import render_chat
from text.chat_template import ChatTemplate
from text.decoding import Vocabulary
from text.prompt_encoder import PromptEncoder
from text.token_bytes import token_table

RAW = byte_level_tokenizer(ordinary=["<tool_call>", "</tool_call>"])
TOKENIZER = Tokenizer.from_buffer(RAW)
VOCABULARY = Vocabulary(token_table(json.loads(RAW), TOKENIZER, 0), [])
CONTROL = {TOKENIZER.token_to_id(token["content"]) for token in json.loads(RAW)["added_tokens"]}
ENCODER = PromptEncoder(RAW)

TEMPLATES = {
    "chatml": CHATML,
    "trimmed": "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>"
    "{% endfor %}",
    "accumulated": "{% set ns = namespace(t='') %}{% for m in messages %}"
    "{% set ns.t = ns.t ~ '<|im_start|>' ~ m['role'] ~ m['content'].split('</think>')[-1] ~ '<|im_end|>' %}"
    "{% endfor %}{{ ns.t.strip() }}",
    "macro": "{% macro turn(m) %}<|im_start|>{{ m.role }}<tool_call>{{ m.content | tojson }}</tool_call>"
    "<|im_end|>{% endmacro %}{% for m in messages %}{{ turn(m) }}{% endfor %}",
    "joined": "{% set turns %}{% for m in messages %}"
    "<|im_start|>{{ [m.role, m.content] | join('<|im_end|>') }}"
    "{% endfor %}{% endset %}{{ turns | replace('\r', '') | trim }}",
}
COMPILED = {name: ChatTemplate(source, {}, 100_000) for name, source in TEMPLATES.items()}

PIECE = st.sampled_from(
    ["<|im_", "start|>", "end|>", "<|im_end|>", "<|im_start|>", "<tool_call>", "</tool", "_call>", "</think>",
     "<", "|", ">", "hello", " ", "\n", "é", "😀", '"']
)  # fmt: skip
CONTENT = st.lists(PIECE, max_size=12).map("".join)
ROLE = st.sampled_from(["system", "user", "assistant", "tool"])
MESSAGES = st.lists(st.fixed_dictionaries({"role": ROLE, "content": CONTENT}), min_size=1, max_size=5)


def control_ids(token_ids: list[int]) -> Counter[int]:
    return Counter(token for token in token_ids if token in CONTROL)


@given(MESSAGES, st.sampled_from(sorted(TEMPLATES)))
def test_control_tokens_are_those_of_the_template(messages: list[dict[str, str]], name: str) -> None:
    rendered = render_chat(COMPILED[name], messages)
    ids = ENCODER.encode_rendered(rendered)
    harmless = [message | {"content": "x"} for message in messages]
    assert control_ids(ids) == control_ids(ENCODER.encode_rendered(render_chat(COMPILED[name], harmless)))
    assert VOCABULARY.decode(ids, skip_special_tokens=False) == rendered


@given(MESSAGES, st.sampled_from(sorted(TEMPLATES)))
def test_harmless_messages_are_encoded_as_the_models_tokenizer_does_it(
    messages: list[dict[str, str]], name: str
) -> None:
    harmless = [message | {"content": message["content"].replace("<", "(")} for message in messages]
    rendered = render_chat(COMPILED[name], harmless)
    assert ENCODER.encode_rendered(rendered) == TOKENIZER.encode(str.__str__(rendered)).ids


@given(CONTENT.filter(bool))
def test_plain_prompt_has_no_control_tokens(text: str) -> None:
    ids = ENCODER.encode_plain(text)
    assert not control_ids(ids)
    assert VOCABULARY.decode(ids) == text
