"""Content blocks as chat messages."""

import json
from typing import Any

import pytest

from gateway.messages.body import CountTokensBody
from gateway.messages.conversation import chat_messages_of
from gateway.transport.strict_json import StrictDecoder
from tenants.errors import Denied

_decoder = StrictDecoder(CountTokensBody)
USE = {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}}
RESULT: dict[str, Any] = {"type": "tool_result", "tool_use_id": "t1"}


def text(content: str) -> dict[str, str]:
    return {"type": "text", "text": content}


def messages_of(*messages: tuple[str, Any], **fields: Any) -> list[dict[str, Any]]:
    shaped = [{"role": role, "content": content} for role, content in messages]
    return chat_messages_of(
        _decoder.decode(json.dumps({"model": "m", "messages": shaped, **fields}).encode())
    )


def test_a_tools_turn() -> None:
    found = messages_of(
        ("user", "Ask."),
        ("assistant", [text("I ask."), USE]),
        ("user", [{**RESULT, "content": [text("one"), text("two")]}, text("Go on.")]),
        system=[text("Be brief.")],
    )
    assert [message["role"] for message in found] == ["system", "user", "assistant", "tool", "user"]
    call = {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    assert found[2] == {"role": "assistant", "content": [text("I ask.")], "tool_calls": [call]}
    assert found[3] == {"role": "tool", "tool_call_id": "t1", "content": "one\ntwo"}


def test_results_stand_where_they_stood() -> None:
    found = messages_of(
        ("user", [text("a"), {**RESULT, "content": "b", "is_error": True}, RESULT, text("c")])
    )
    assert [message["content"] for message in found] == [[text("a")], "Error: b", "", [text("c")]]


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([("user", [])], "messages[0].content"),
        ([("user", [USE])], "messages[0].content[0]"),
        ([("assistant", [RESULT]), ("user", "x")], "messages[0].content[0]"),
        ([("user", "x"), ("assistant", "y")], "messages"),
    ],
)
def test_what_makes_no_conversation_is_refused(messages: list[Any], param: str) -> None:
    with pytest.raises(Denied) as denied:
        messages_of(*messages)
    assert denied.value.param == param
