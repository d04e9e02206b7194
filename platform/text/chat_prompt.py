"""Chat messages as a chat template wants them, checked and measured before it runs."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from inference_engine.contract.codes import Code

from .chat_template import ChatTemplate
from .errors import PromptError
from .tools.without_template import instruction_of, with_instruction, written_out
from .tracked_text import TrackedText

Message = Mapping[str, Any]

ROLES = {role: TrackedText.owned(role) for role in ("developer", "system", "user", "assistant", "tool")}
"""A closed set, so templates may build control tokens of them (`<|user|>`)."""


def render_chat(
    template: ChatTemplate,
    messages: Sequence[Message],
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    add_generation_prompt: bool = True,
) -> TrackedText:
    """`tools` as OpenAI's interface has them. Raises PromptError."""
    if not messages:
        raise PromptError("messages must hold at least one message", "messages")
    first, *others = _ways_to_tell_calls(template, messages)
    try:
        return _render(template, messages, tools, add_generation_prompt, first)
    except PromptError as error:
        for way in others:
            with suppress(PromptError):
                return _render(template, messages, tools, add_generation_prompt, way)
        raise error


class _CallsAs(NamedTuple):
    objects: bool = True
    """Arguments as the objects they are, or as the text that clients send."""
    null_content: bool = False


def _ways_to_tell_calls(template: ChatTemplate, messages: Sequence[Message]) -> list[_CallsAs]:
    """Templates differ in what they take; the likely way comes first."""
    if not any(message.get("tool_calls") for message in messages):
        return [_CallsAs()]
    contents = (True, False) if template.asks_for_null else (False,)
    return [_CallsAs(objects, null) for null in contents for objects in (True, False)]


def _render(
    template: ChatTemplate,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] | None,
    add_generation_prompt: bool,
    way: _CallsAs,
) -> TrackedText:
    shaped = [_shaped(message, index, template, way) for index, message in enumerate(messages)]
    if not template.knows_calls:
        shaped = written_out(shaped)
    if tools and not template.knows_tools:
        shaped = with_instruction(shaped, instruction_of(tools), takes_system=template.takes_system)
    return template.render(
        {
            "messages": shaped,
            "tools": list(tools) if tools else None,
            "documents": None,
            "add_generation_prompt": add_generation_prompt,
        }
    )


def check_size(
    messages: Sequence[Message], max_messages: int, max_bytes: int, tools: Sequence[Mapping[str, Any]] = ()
) -> int:
    """UTF-8 bytes of all texts. A message costs a token at least: what could never fit is refused at once."""
    num_bytes = sum(byte_length(json.dumps(tool, ensure_ascii=False), "tools") for tool in tools)
    for index, message in enumerate(messages):
        num_bytes += sum(byte_length(text, f"messages[{index}].content") for text in _texts(message))
    if len(messages) > max_messages or num_bytes > max_bytes:
        raise PromptError(
            f"{len(messages)} messages of {num_bytes} bytes can't fit the model's context",
            "messages",
            Code.CONTEXT_LENGTH_EXCEEDED,
        )
    return num_bytes


def byte_length(text: str, param: str) -> int:
    """UTF-8 bytes. Raises PromptError for a lone surrogate, which no encoding has."""
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise PromptError("the text holds a lone surrogate", param) from error


def _texts(message: Message) -> list[str]:
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str)]


def _shaped(message: Message, index: int, template: ChatTemplate, way: _CallsAs) -> dict[str, Any]:
    role = message.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise PromptError(f"role must be one of {', '.join(ROLES)}", f"messages[{index}].role")
    if role == "developer" and not template.knows_developer:
        role = "system"
    shaped = {key: value for key, value in message.items() if value is not None}
    shaped["role"] = ROLES[role]
    shaped["content"] = _content(message, index)
    if shaped.get("tool_calls"):
        if way.objects:
            shaped["tool_calls"] = [_tool_call(call) for call in shaped["tool_calls"]]
        if way.null_content and not shaped["content"]:
            shaped["content"] = None
    return shaped


def _content(message: Message, index: int) -> str:
    """Text parts become lines of one string: most templates know nothing else."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if content is None and message.get("role") == "assistant":
        return ""
    if not isinstance(content, list):
        raise PromptError("content must be a string or a list of text parts", f"messages[{index}].content")
    return "\n".join(_part(part, f"messages[{index}].content[{place}]") for place, part in enumerate(content))


def _part(part: Any, param: str) -> str:
    if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
        raise PromptError("each part of content must be an object with a type", param)
    if part["type"] != "text":
        raise PromptError("only text parts can be served", f"{param}.type", Code.UNSUPPORTED_FEATURE)
    if not isinstance(part.get("text"), str):
        raise PromptError("text must be a string", f"{param}.text")
    return str(part["text"])


def _tool_call(call: Any) -> Any:
    """Clients send a call's arguments as JSON text; templates are written for the object."""
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("arguments"), str):
        return call
    try:
        arguments = json.loads(function["arguments"])
    except (ValueError, RecursionError):
        return call
    return {**call, "function": {**function, "arguments": arguments}} if isinstance(arguments, dict) else call
