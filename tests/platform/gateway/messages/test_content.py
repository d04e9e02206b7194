"""Blocks and their events."""

import json

from gateway.messages.content import ContentBlocks
from text.tools.events import CallArguments, CallBegin, CallEnd, ParsedPart


def told(parts: list[ParsedPart]) -> tuple[list[str], ContentBlocks]:
    content = ContentBlocks()
    events = [event for part in parts for event in content.add(part)] + content.close()
    indices = [json.loads(event.data)["index"] for event in events]
    assert indices == sorted(indices)
    return [event.type.removeprefix("content_block_") for event in events], content


def test_text_then_calls() -> None:
    parts: list[ParsedPart] = [
        "He",
        "llo",
        CallBegin(0, "c", "f"),
        CallArguments(0, '{"a"'),
        CallArguments(0, ": 1}"),
    ]
    kinds, content = told([*parts, CallEnd(0, True), CallBegin(1, "d", "g"), CallEnd(1, True)])
    assert kinds == ["start", "delta", "delta", "stop", "start", "delta", "delta", "stop", "start", "stop"]
    assert content.blocks[0] == {"type": "text", "text": "Hello"}
    assert content.blocks[1] == {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}
    assert content.blocks[2]["input"] == {}


def test_a_call_that_is_cut_has_no_input() -> None:
    kinds, content = told([CallBegin(0, "c", "f"), CallArguments(0, '{"a": "lo'), CallEnd(0, False)])
    assert kinds == ["start", "delta", "stop"]
    assert content.blocks[0]["input"] == {}


def test_nothing_is_no_block() -> None:
    assert told([])[1].blocks == []
