"""A conversation's items as the messages that chat templates know."""

from collections.abc import Sequence
from typing import Any

from gateway.responses.items import Item

Message = dict[str, Any]


def messages_of(instructions: str | None, items: Sequence[Item]) -> list[Message]:
    messages: list[Message] = []
    if instructions is not None:
        messages.append({"role": "system", "content": instructions})
    for item in items:
        if item["type"] == "function_call":
            _add_call(messages, item)
        elif item["type"] == "function_call_output":
            content = _texts(item["output"])
            messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": content})
        else:
            messages.append({"role": item["role"], "content": _texts(item["content"])})
    return messages


def _add_call(messages: list[Message], item: Item) -> None:
    """Calls that follow one another, or what was said before them, are one message."""
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": None})
    function = {"name": item["name"], "arguments": item["arguments"]}
    call = {"id": item["call_id"], "type": "function", "function": function}
    messages[-1].setdefault("tool_calls", []).append(call)


def _texts(content: str | list[dict[str, Any]]) -> str | list[dict[str, str]]:
    if isinstance(content, str):
        return content
    return [{"type": "text", "text": part.get("text", part.get("refusal", ""))} for part in content]
