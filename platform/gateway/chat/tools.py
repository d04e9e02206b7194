"""`tools`, `tool_choice` and `parallel_tool_calls` of a chat completion."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from gateway.orders.tools import MAX_TOOLS, Function, FunctionName, ToolUse, tool_use_of


class FunctionBody(Struct, forbid_unknown_fields=True, kw_only=True):
    name: FunctionName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    """Forced calls follow the schema whatever it says; others are the model's own."""


class FunctionTool(Struct, forbid_unknown_fields=True, tag_field="type", tag="function"):
    function: FunctionBody


class NamedFunction(Struct, forbid_unknown_fields=True):
    name: FunctionName


class NamedTool(Struct, forbid_unknown_fields=True, tag_field="type", tag="function"):
    function: NamedFunction


Tools = Annotated[list[FunctionTool], Meta(max_length=MAX_TOOLS)]
Choice = Literal["none", "auto", "required"] | NamedTool


class CalledFunction(Struct, forbid_unknown_fields=True):
    name: FunctionName
    arguments: str


class ToolCall(Struct, forbid_unknown_fields=True, tag_field="type", tag="function"):
    """Of an assistant's message."""

    id: Annotated[str, Meta(max_length=256)]
    function: CalledFunction


def tools_of(
    tools: Sequence[FunctionTool] | None, choice: Choice | None, is_parallel: bool | None
) -> ToolUse | None:
    """Raises Denied."""
    functions = [
        Function(name=one.name, description=one.description, parameters=one.parameters)
        for one in (tool.function for tool in tools or ())
    ]
    if isinstance(choice, NamedTool):
        return tool_use_of(functions, None, choice.function.name, is_parallel)
    return tool_use_of(functions, choice, None, is_parallel)
