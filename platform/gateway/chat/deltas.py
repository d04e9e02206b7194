"""Content and calls as a chat completion's deltas, and calls as its message has them."""

from collections.abc import Iterable
from typing import Any

from gateway.runs.chunks import encode
from text.tools.events import CallArguments, CallBegin, CallEvent, ParsedPart


def delta_of(part: ParsedPart) -> bytes:
    """The chunk's member, empty where nothing shows. A call's id and name come with its first delta only."""
    match part:
        case str():
            return b'"delta":{"content":' + encode(part) + b"}" if part else b""
        case CallBegin(index, call_id, name):
            call = {"index": index, **_call(call_id, name, "")}
        case CallArguments(index, text):
            call = {"index": index, "function": {"arguments": text}}
        case _:
            return b""
    return b'"delta":{"tool_calls":[' + encode(call) + b"]}"


def whole_calls(events: Iterable[CallEvent]) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = []
    for event in events:
        if isinstance(event, CallBegin):
            calls.append(_call(event.id, event.name, ""))
        elif isinstance(event, CallArguments):
            calls[event.index]["function"]["arguments"] += event.text
    return calls


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
