"""Tools for models whose chat template knows none: told in words, in the Hermes style.

The instruction joins the first system message, or stands in the first user message where the template takes
no system message. Earlier calls are written into the assistant's message as the model is told to write them,
and results into a user message between `<tool_response>` tags. All of it is plain text: no control tokens.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from text.tracked_text import TrackedText

Shaped = dict[str, Any]
"""A message whose content is one text."""

INSTRUCTION = """You can call functions to help the user. They are described here as JSON, one a line:
<tools>
{tools}
</tools>
To call a function, write its name and its arguments as a JSON object between tags, one pair of tags a call:
<tool_call>
{{"name": "the function's name", "arguments": {{"an argument's name": "its value"}}}}
</tool_call>
The results follow between <tool_response> tags. Where no function is needed, answer in words."""


def instruction_of(tools: Sequence[Mapping[str, Any]]) -> str:
    lines = (json.dumps(tool.get("function", tool), ensure_ascii=False) for tool in tools)
    return INSTRUCTION.format(tools="\n".join(lines))


def written_out(messages: Sequence[Shaped]) -> list[Shaped]:
    """Calls and results of a conversation as words."""
    written: list[Shaped] = []
    was_result = False
    for message in messages:
        is_result = message["role"] == "tool"
        if is_result and was_result:  # templates want roles to take turns
            written[-1]["content"] += f"\n{_result(message)}"
        elif is_result:
            written.append({"role": TrackedText.owned("user"), "content": _result(message)})
        else:
            written.append(_with_calls(message))
        was_result = is_result
    return written


def with_instruction(messages: Sequence[Shaped], instruction: str, *, takes_system: bool) -> list[Shaped]:
    """Behind what the system message says, else in front of what the first user says."""
    instructed = list(messages)
    first = instructed[0]
    if takes_system and first["role"] in ("system", "developer"):
        instructed[0] = first | {"content": f"{first['content']}\n\n{instruction}"}
    elif takes_system:
        instructed.insert(0, {"role": TrackedText.owned("system"), "content": instruction})
    else:
        place = next((at for at, one in enumerate(instructed) if one["role"] == "user"), 0)
        told = f"{instruction}\n\n{instructed[place]['content']}"
        instructed[place] = instructed[place] | {"content": told}
    return instructed


def _result(message: Shaped) -> str:
    return f"<tool_response>\n{message['content']}\n</tool_response>"


def _with_calls(message: Shaped) -> Shaped:
    if not message.get("tool_calls"):
        return message
    calls = [_call(call) for call in message["tool_calls"]]
    content = "\n".join([message["content"], *calls] if message["content"] else calls)
    return {"role": message["role"], "content": content}


def _call(call: Any) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    return f"<tool_call>\n{json.dumps(function or call, ensure_ascii=False)}\n</tool_call>"
