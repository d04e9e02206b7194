"""`tools`, `tool_choice` and `parallel_tool_calls` of a response."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from gateway.orders.tools import MAX_TOOLS, Function, FunctionName, ToolUse, tool_use_of


class ResponseTool(Struct, forbid_unknown_fields=True, tag_field="type", tag="function", kw_only=True):
    name: FunctionName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    """Forced calls follow the schema whatever it says; others are the model's own."""


class NamedFunction(Struct, forbid_unknown_fields=True, tag_field="type", tag="function"):
    name: FunctionName


Tools = Annotated[list[ResponseTool], Meta(max_length=MAX_TOOLS)]
Choice = Literal["none", "auto", "required"] | NamedFunction


def tools_of_response(
    tools: Sequence[ResponseTool] | None, choice: Choice | None, is_parallel: bool | None
) -> ToolUse | None:
    """Raises Denied."""
    functions = [
        Function(name=tool.name, description=tool.description, parameters=tool.parameters)
        for tool in tools or ()
    ]
    if isinstance(choice, NamedFunction):
        return tool_use_of(functions, None, choice.name, is_parallel)
    return tool_use_of(functions, choice, None, is_parallel)
