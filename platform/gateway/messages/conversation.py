"""Messages of content blocks as the messages that chat templates know."""

from collections.abc import Sequence
from typing import Any

from gateway.messages.body import CountTokensBody, MessageBody, TextBlock, ToolResultBlock, ToolUseBlock
from gateway.runs.chunks import encode
from inference_engine.contract.codes import Code
from tenants.errors import Denied

Message = dict[str, Any]
FAILED = "Error: "
"""In front of the result of a tool that failed: templates have no other place for it."""


def chat_messages_of(body: CountTokensBody) -> list[Message]:
    """Raises Denied."""
    if body.messages and body.messages[-1].role == "assistant":
        text = "Continuing an assistant's message is not served; the last message must be the user's."
        raise Denied(Code.UNSUPPORTED_FEATURE, text, param="messages")
    messages: list[Message] = []
    if body.system is not None:
        messages.append({"role": "system", "content": _content(body.system)})
    for index, message in enumerate(body.messages):
        messages += _shaped(message, f"messages[{index}]")
    return messages


def _shaped(message: MessageBody, at: str) -> list[Message]:
    """Results of tools are messages of their own, where they stand."""
    if isinstance(message.content, str):
        return [{"role": message.role, "content": message.content}]
    if not message.content:
        raise Denied(Code.INVALID_REQUEST, f"'{at}.content' is empty.", param=f"{at}.content")
    shaped: list[Message] = []
    texts: list[TextBlock] = []
    calls: list[dict[str, Any]] = []
    for index, block in enumerate(message.content):
        _check_side(message.role, block, f"{at}.content[{index}]")
        if isinstance(block, TextBlock):
            texts.append(block)
        elif isinstance(block, ToolUseBlock):
            calls.append(_call(block))
        else:
            shaped += _said(message.role, texts)
            texts = []
            shaped.append(_result(block))
    if calls:
        content = _content(texts) if texts else None
        return [{"role": "assistant", "content": content, "tool_calls": calls}]
    return shaped + _said(message.role, texts)


def _said(role: str, texts: Sequence[TextBlock]) -> list[Message]:
    return [{"role": role, "content": _content(texts)}] if texts else []


def _check_side(role: str, block: TextBlock | ToolUseBlock | ToolResultBlock, at: str) -> None:
    owner = {ToolUseBlock: "assistant", ToolResultBlock: "user"}.get(type(block), role)
    if owner != role:
        raise Denied(Code.INVALID_REQUEST, f"A block of this type is not the {role}'s.", param=at)


def _call(block: ToolUseBlock) -> dict[str, Any]:
    function = {"name": block.name, "arguments": encode(block.input).decode()}
    return {"id": block.id, "type": "function", "function": function}


def _result(block: ToolResultBlock) -> Message:
    text = "\n".join(one.text for one in block.content) if isinstance(block.content, list) else block.content
    shown = (FAILED if block.is_error else "") + (text or "")
    return {"role": "tool", "tool_call_id": block.tool_use_id, "content": shown}


def _content(given: str | Sequence[TextBlock]) -> str | list[dict[str, str]]:
    if isinstance(given, str):
        return given
    return [{"type": "text", "text": block.text} for block in given]
