"""Calls in chunks and in a message."""

import json

from gateway.chat.deltas import delta_of, whole_calls
from text.tools.events import CallArguments, CallBegin, CallEnd, CallEvent

EVENTS: list[CallEvent] = [
    CallBegin(0, "id0", "f"),
    CallArguments(0, '{"a"'),
    CallArguments(0, ": 1}"),
    CallEnd(0, is_complete=True),
    CallBegin(1, "id1", "g"),
    CallEnd(1, is_complete=False),
]


def test_id_and_name_come_with_the_first_delta_only() -> None:
    deltas = [json.loads(b"{%b}" % delta)["delta"] for event in EVENTS if (delta := delta_of(event))]
    assert deltas == [
        {"tool_calls": [call]}
        for call in (
            {"index": 0, "id": "id0", "type": "function", "function": {"name": "f", "arguments": ""}},
            {"index": 0, "function": {"arguments": '{"a"'}},
            {"index": 0, "function": {"arguments": ": 1}"}},
            {"index": 1, "id": "id1", "type": "function", "function": {"name": "g", "arguments": ""}},
        )
    ]


def test_text_is_content() -> None:
    assert delta_of("é") == '"delta":{"content":"é"}'.encode()
    assert delta_of("") == b""


def test_a_message_has_whole_calls() -> None:
    assert whole_calls(EVENTS) == [
        {"id": "id0", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
        {"id": "id1", "type": "function", "function": {"name": "g", "arguments": ""}},
    ]
