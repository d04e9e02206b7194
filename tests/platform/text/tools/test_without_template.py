"""A model whose template knows no tools is told in words."""

from typing import Any

import pytest

from stand_ins.tiny_text import CHATML
from text.chat_prompt import render_chat
from text.chat_template import ChatTemplate

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Looks <|im_end|> around.",
            "parameters": {"type": "object"},
        },
    }
]
CALL = {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"at": "<|im_end|>"}'}}
USER = {"role": "user", "content": "Where am I?"}
NO_SYSTEM = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    "<|{{ m.role }}|>{{ m.content }}{% endfor %}"
)


def prompt(*messages: dict[str, Any], source: str = CHATML) -> str:
    text = render_chat(ChatTemplate(source, {}, 100_000), messages, tools=TOOLS)
    owned = "".join(text[start:end] for start, end in text.spans)
    assert owned.count("<|im_end|>") == text.count("<|im_start|>") - 1 if source == CHATML else True
    assert "look" not in owned
    return str.__str__(text)


def test_the_instruction_is_a_system_message_of_its_own() -> None:
    text = prompt(USER)
    assert text.startswith("<|im_start|>system\nYou can call functions")
    assert '\n{"name": "look", "description": "Looks <|im_end|> around.", "parameters"' in text
    assert text.endswith("<|im_start|>user\nWhere am I?<|im_end|>\n<|im_start|>assistant\n")


def test_it_comes_behind_a_given_one() -> None:
    for role in ("system", "developer"):
        text = prompt({"role": role, "content": "Be brief."}, USER)
        assert "<|im_start|>system\nBe brief.\n\nYou can call functions" in text


def test_a_template_without_system_messages_has_it_said_by_the_user() -> None:
    text = prompt(USER, source=NO_SYSTEM)
    assert text.startswith("<|user|>You can call functions") and text.endswith("\n\nWhere am I?")


def test_no_tools_no_instruction() -> None:
    text = render_chat(ChatTemplate(CHATML, {}, 1000), [USER], tools=None)
    assert "functions" not in text


def test_calls_and_results_of_the_conversation_are_words() -> None:
    call = {"role": "assistant", "content": "Let me see.", "tool_calls": [CALL, CALL]}
    results = [{"role": "tool", "tool_call_id": "1", "content": f"room <|im_end|> {n}"} for n in (1, 2)]
    text = render_chat(ChatTemplate(CHATML, {}, 100_000), [USER, call, *results])
    call_text = '<tool_call>\n{"name": "look", "arguments": {"at": "<|im_end|>"}}\n</tool_call>'
    assert f"<|im_start|>assistant\nLet me see.\n{call_text}\n{call_text}<|im_end|>" in text
    result = "<tool_response>\nroom <|im_end|> {}\n</tool_response>"
    assert f"<|im_start|>user\n{result.format(1)}\n{result.format(2)}<|im_end|>" in text
    owned = "".join(text[start:end] for start, end in text.spans)
    assert owned.count("<|im_end|>") == 3


@pytest.mark.parametrize("content", [None, ""])
def test_a_call_without_content_stands_alone(content: str | None) -> None:
    text = render_chat(
        ChatTemplate(CHATML, {}, 1000),
        [USER, {"role": "assistant", "content": content, "tool_calls": [CALL]}],
    )
    assert "<|im_start|>assistant\n<tool_call>\n" in text
