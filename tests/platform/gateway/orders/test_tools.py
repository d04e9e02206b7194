"""Which tools a model is shown, which it may call, and what forces it."""

import json
from typing import Any

import pytest

from gateway.chat.tools import FunctionBody, FunctionTool, NamedFunction, NamedTool, tools_of
from gateway.orders.tools import MAX_TOOLS, Function, ToolUse, constrained, tool_use_of
from inference_engine.contract.requests import Constraint, ConstraintKind
from inference_engine.contract.tool_calls import read_tool_calls
from tenants.errors import Denied
from text.tools.syntax import HERMES, LLAMA3

SCHEMA = {
    "type": "object",
    "properties": {"b": {"type": "string"}, "a": {"$ref": "#/$defs/x"}},
    "$defs": {"x": {}},
}
F, G = Function(name="f", description="F.", parameters=SCHEMA), Function(name="g")
ANSWER = Constraint(kind=ConstraintKind.JSON_OBJECT)


def use(choice: str | None = None, only: str | None = None, is_parallel: bool | None = None) -> ToolUse:
    found = tool_use_of([F, G], choice, only, is_parallel)
    assert found is not None
    return found


def test_a_model_is_shown_every_tool_as_templates_know_them() -> None:
    assert use("auto").shown() == [
        {"type": "function", "function": {"name": "f", "description": "F.", "parameters": SCHEMA}},
        {
            "type": "function",
            "function": {"name": "g", "description": "", "parameters": {"type": "object", "properties": {}}},
        },
    ]
    assert use(only="g").shown() == use().shown()


def test_none_is_none() -> None:
    assert tool_use_of([F], "none", None, None) is None
    assert tool_use_of([], "auto", None, True) is None


def test_auto_forces_nothing() -> None:
    assert constrained(use(), HERMES, None) is None
    assert use().names == {"f", "g"} and not use().is_forced


def forms(tools: ToolUse, syntax: Any = HERMES) -> Any:
    constraint = constrained(tools, syntax, None)
    assert constraint is not None and constraint.kind is ConstraintKind.TOOL_CALLS
    return read_tool_calls(constraint.source)


def test_required_is_one_of_them_at_least() -> None:
    calls = forms(use("required"))
    assert len(calls.forms) == 2 and calls.max_calls is None
    schema = bytes(calls.forms[0].schema).decode()
    assert json.loads(schema) == SCHEMA
    assert list(json.loads(schema)["properties"]) == ["b", "a"]
    assert forms(use("required", is_parallel=False)).max_calls == 1
    assert forms(use("required"), LLAMA3).max_calls == 1


def test_a_named_one_is_called_once() -> None:
    calls = forms(use(only="g"))
    assert (len(calls.forms), calls.max_calls) == (1, 1)
    assert '"g"' in calls.forms[0].begin
    assert use(only="g").names == {"g"}


def test_a_forced_call_leaves_an_answers_format_nothing_to_do() -> None:
    forced = constrained(use("required"), HERMES, ANSWER)
    assert forced is not None and forced.kind is ConstraintKind.TOOL_CALLS
    assert constrained(None, HERMES, ANSWER) is ANSWER


@pytest.mark.parametrize(
    ("answer", "schema"),
    [
        (ANSWER, {"type": "object"}),
        (Constraint(kind=ConstraintKind.JSON_SCHEMA, source='{"type": "null"}'), {"type": "null"}),
    ],
)
def test_under_auto_an_answer_in_its_format_may_come_instead(answer: Constraint, schema: object) -> None:
    constraint = constrained(use(), HERMES, answer)
    assert constraint is not None
    calls = read_tool_calls(constraint.source)
    assert [json.loads(bytes(one)) for one in calls.answer] == [schema]
    assert len(calls.forms) == 2


@pytest.mark.parametrize(
    ("functions", "choice", "only", "param"),
    [
        ([], "required", None, "tool_choice"),
        ([], None, "f", "tool_choice"),
        ([F], None, "g", "tool_choice"),
        ([F, G, F], "auto", None, "tools"),
        ([Function(name=f"f{index}") for index in range(MAX_TOOLS + 1)], None, None, "tools"),
    ],
)
def test_what_makes_no_sense_is_named(
    functions: list[Function], choice: str | None, only: str | None, param: str
) -> None:
    with pytest.raises(Denied) as denied:
        tool_use_of(functions, choice, only, None)
    assert denied.value.param == param


def test_chat_bodies_say_it_their_way() -> None:
    tools = [FunctionTool(FunctionBody(name="f", parameters=SCHEMA, strict=True))]
    named = tools_of(tools, NamedTool(NamedFunction("f")), True)
    assert named is not None and (named.only, named.is_forced) == ("f", True)
    required = tools_of(tools, "required", False)
    assert required is not None and (required.only, required.is_parallel) == (None, False)
    assert tools_of(None, None, None) is None
