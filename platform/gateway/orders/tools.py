"""What a client lets the model call, whichever endpoint it came through."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from inference_engine.contract.codes import Code
from inference_engine.contract.requests import Constraint
from inference_engine.contract.tool_calls import MAX_FORMS
from tenants.errors import Denied
from text.tools.syntax import Tool, ToolSyntax

MAX_TOOLS = 128
assert MAX_TOOLS <= MAX_FORMS
ANY_OBJECT = '{"type": "object"}'
FunctionName = Annotated[str, Meta(pattern=r"^[a-zA-Z0-9_-]{1,64}\Z")]
NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}


class ToolChoice(StrEnum):
    AUTO = "auto"
    REQUIRED = "required"
    """At least one call; a single tool where the client names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    name: str
    description: str | None = None
    parameters: Mapping[str, Any] | None = None
    """JSON schema of its arguments."""

    def shown(self) -> dict[str, Any]:
        """As chat templates are written for it."""
        function = {
            "name": self.name,
            "description": self.description or "",
            "parameters": self.parameters or NO_ARGUMENTS,
        }
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """Of one order. An order without tools, or whose client wants no call, has none."""

    functions: tuple[Function, ...]
    choice: ToolChoice = ToolChoice.AUTO
    only: str | None = None
    """The tool that has to be called."""
    is_parallel: bool = True
    """More than one call in an answer."""

    @property
    def is_forced(self) -> bool:
        return self.choice is ToolChoice.REQUIRED

    @property
    def names(self) -> frozenset[str]:
        """Of the tools that may be called."""
        return frozenset([self.only] if self.only is not None else [one.name for one in self.functions])

    def shown(self) -> list[dict[str, Any]]:
        """All of them, for the prompt."""
        return [function.shown() for function in self.functions]

    def constraint(self, syntax: ToolSyntax, answer: Constraint | None = None) -> Constraint:
        """Calls, or an answer in the format asked for; the schemas are checked by the engine."""
        tools = [
            Tool(name=one.name, schema=msgspec.Raw(msgspec.json.encode(one.parameters or NO_ARGUMENTS)))
            for one in self.functions
            if one.name in self.names
        ]
        max_calls = 1 if self.only is not None or not self.is_parallel else None
        schemas = [] if answer is None else [msgspec.Raw((answer.source or ANY_OBJECT).encode())]
        return syntax.forced(tools, max_calls, schemas).constraint()


def tool_use_of(
    functions: Sequence[Function], choice: str | None, only: str | None, is_parallel: bool | None
) -> ToolUse | None:
    """`choice`: none, auto or required. Raises Denied."""
    _check(functions, choice, only)
    if not functions or choice == "none":
        return None
    return ToolUse(
        functions=tuple(functions),
        choice=ToolChoice.REQUIRED if choice == "required" or only is not None else ToolChoice.AUTO,
        only=only,
        is_parallel=is_parallel is not False,
    )


def constrained(tools: ToolUse | None, syntax: ToolSyntax, answer: Constraint | None) -> Constraint | None:
    """A forced call leaves no room for an answer; under auto a call, or an answer in its format, may come."""
    if tools is None:
        return answer
    if tools.is_forced:
        return tools.constraint(syntax)
    return None if answer is None else tools.constraint(syntax, answer)


def _check(functions: Sequence[Function], choice: str | None, only: str | None) -> None:
    names = [function.name for function in functions]
    if len(names) > MAX_TOOLS:
        raise _invalid("tools", f"At most {MAX_TOOLS} tools are accepted in one request.")
    for name in names:
        if names.count(name) > 1:
            raise _invalid("tools", f"Two tools have the name '{name}'.")
    if not names and (choice == "required" or only is not None):
        raise _invalid("tool_choice", "'tool_choice' asks for a call, and there are no 'tools'.")
    if only is not None and only not in names:
        raise _invalid("tool_choice", f"'tool_choice' names '{only}', which is none of the 'tools'.")


def _invalid(param: str, message: str) -> Denied:
    return Denied(Code.INVALID_REQUEST, message, param=param)
