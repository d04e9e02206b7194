"""Calls that a model makes of its own accord: the engine says them token for token."""

import json
from typing import Any

import pytest

from http_service import Service, Stream
from inference_engine.contract.requests import Abort
from scripted_stack import ScriptedStack
from servers_of_tests import wait_until

CHAT = "/v1/chat/completions"
TOOLS = [
    {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}},
    {"type": "function", "function": {"name": "add"}},
]
LOOK_UP = '<tool_call>\n{"name": "look_up", "arguments": {"word": "été </tool_call> \\"x\\""}}\n</tool_call>'
ADD = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": [2, {"c": 3}]}}\n</tool_call>'
ARGUMENTS = {"look_up": {"word": 'été </tool_call> "x"'}, "add": {"a": 1, "b": [2, {"c": 3}]}}


@pytest.fixture
def service(scripted: ScriptedStack) -> Service:
    return scripted.service


def body(service: Service, **fields: Any) -> dict[str, Any]:
    return service.chat_body("What is 1 + 2?", **{"tools": TOOLS, "max_tokens": 1000, **fields})


def put_together(stream: Stream, index: int = 0) -> dict[str, Any]:
    """The message that a stream's deltas make, each of which is checked."""
    message: dict[str, Any] = {"content": None, "tool_calls": []}
    for chunk in stream.chunks:
        for choice in chunk["choices"]:
            if choice["index"] == index:
                _add(message, choice["delta"])
    return message


def _add(message: dict[str, Any], delta: dict[str, Any]) -> None:
    if delta.get("content") is not None:
        message["content"] = (message["content"] or "") + delta["content"]
    for call in delta.get("tool_calls", []):
        assert type(call["index"]) is int
        if call["index"] == len(message["tool_calls"]):
            assert set(call) == {"index", "id", "type", "function"} and call["type"] == "function"
            message["tool_calls"].append(
                {"id": call["id"], "name": call["function"]["name"], "arguments": ""}
            )
        else:
            assert set(call) == {"index", "function"} and set(call["function"]) == {"arguments"}
            assert call["index"] == len(message["tool_calls"]) - 1
        message["tool_calls"][-1]["arguments"] += call["function"]["arguments"]


def both(service: Service, **fields: Any) -> tuple[dict[str, Any], str]:
    """Message and finish reason, the same streamed and not."""
    [choice] = service.answer(CHAT, body(service, **fields))["choices"]
    stream = service.stream(CHAT, body(service, stream=True, **fields))
    assert stream.is_done and stream.error is None
    streamed = put_together(stream)
    [reason] = stream.finish_reasons()
    message = choice["message"]
    calls = [call["function"] for call in message.get("tool_calls", [])]
    assert [{name: call[name] for name in ("name", "arguments")} for call in streamed["tool_calls"]] == calls
    assert (streamed["content"], reason) == (message["content"] or None, choice["finish_reason"])
    return message, reason


@pytest.mark.parametrize("tokens_per_step", [1, 7])
def test_content_and_then_calls(scripted: ScriptedStack, service: Service, tokens_per_step: int) -> None:
    scripted.say(scripted.ids_of(f"Let me see.\n{LOOK_UP}\n{ADD}"), tokens_per_step)
    message, reason = both(service)
    assert (message["content"], reason) == ("Let me see.", "tool_calls")
    found = {
        call["function"]["name"]: json.loads(call["function"]["arguments"]) for call in message["tool_calls"]
    }
    assert found == ARGUMENTS
    assert len({call["id"] for call in message["tool_calls"]}) == 2


def test_calls_alone_have_no_content(scripted: ScriptedStack, service: Service) -> None:
    scripted.say(scripted.ids_of(ADD))
    message, reason = both(service)
    assert (message["content"], reason) == (None, "tool_calls")


@pytest.mark.parametrize("max_tokens", [*range(1, 30, 3), 34])
def test_case_18_cut_by_max_tokens(scripted: ScriptedStack, service: Service, max_tokens: int) -> None:
    """Of the marker nothing is shown before it is clear that it is none."""
    ids = scripted.ids_of(ADD)
    assert len(ids) > 34
    scripted.say(ids)
    message, reason = both(service, max_tokens=max_tokens)
    assert reason == "length"
    if "tool_calls" in message:
        [call] = message["tool_calls"]
        assert json.dumps(ARGUMENTS["add"]).startswith(call["function"]["arguments"])
        assert message["content"] is None
    else:
        assert ADD.startswith(message["content"])


def test_one_call_where_parallel_ones_are_not_wanted(scripted: ScriptedStack, service: Service) -> None:
    scripted.say(scripted.ids_of(f"{ADD}\n{LOOK_UP}"), tokens_per_step=1)
    message, reason = both(service, parallel_tool_calls=False)
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["add"]
    assert reason == "tool_calls"


def test_the_engine_is_told_that_no_more_is_wanted(scripted: ScriptedStack, service: Service) -> None:
    scripted.say(scripted.ids_of(f"{ADD}{' and so on' * 200}"))
    scripted.engine.received.clear()
    answer = service.answer(CHAT, body(service, parallel_tool_calls=False))
    assert answer["usage"]["completion_tokens"] < 60
    wait_until(lambda: bool(scripted.engine.got(Abort)), "an abort", 20)


def test_a_stop_string_within_a_call_ends_it_unfinished(scripted: ScriptedStack, service: Service) -> None:
    scripted.say(scripted.ids_of(ADD))
    message, reason = both(service, stop=['"b"'])
    assert reason == "stop"
    assert message["tool_calls"][0]["function"]["arguments"] == '{"a": 1, '


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "nobody", "arguments": {}}\n</tool_call>',
        "<tool_call>add(1, 2)</tool_call>",
        '{"name": "add", "arguments": {}}',
        "1 < 2 <tool_",
    ],
)
def test_what_is_no_call_is_content(scripted: ScriptedStack, service: Service, text: str) -> None:
    scripted.say(scripted.ids_of(text))
    message, reason = both(service)
    assert (message["content"], reason) == (text, "stop")
    assert "tool_calls" not in message


@pytest.mark.parametrize("fields", [{"tool_choice": "none"}, {"tools": []}, {"tools": None}], ids=str)
def test_without_tools_a_call_is_text(scripted: ScriptedStack, service: Service, fields: Any) -> None:
    scripted.say(scripted.ids_of(ADD))
    message, reason = both(service, **fields)
    assert (message["content"], reason) == (ADD, "stop")


def test_every_token_keeps_its_logprob(scripted: ScriptedStack, service: Service) -> None:
    ids = scripted.ids_of(f"Yes. {ADD}")
    scripted.say(ids)
    fields = {"logprobs": True, "return_token_ids": True}
    [choice] = service.answer(CHAT, body(service, **fields))["choices"]
    assert choice["token_ids"] == ids and len(choice["logprobs"]["content"]) == len(ids)
    stream = service.stream(CHAT, body(service, stream=True, **fields))
    chunks = [one for chunk in stream.chunks for one in chunk["choices"]]
    assert [token for one in chunks for token in one.get("token_ids", [])] == ids
    assert sum(len(one["logprobs"]["content"]) for one in chunks if one["logprobs"]) == len(ids)


def test_several_choices_each_have_their_calls(scripted: ScriptedStack, service: Service) -> None:
    scripted.say(scripted.ids_of(ADD))
    answer = service.answer(CHAT, body(service, n=3))
    assert [one["finish_reason"] for one in answer["choices"]] == ["tool_calls"] * 3
    assert len({one["message"]["tool_calls"][0]["id"] for one in answer["choices"]}) == 3
    stream = service.stream(CHAT, body(service, n=3, stream=True))
    for index in range(3):
        assert put_together(stream, index)["tool_calls"][0]["name"] == "add"
