"""Which syntax a template speaks, and that forced calls are read back by the same syntax's parser."""

import pytest
from msgspec import Raw

from inference_engine.contract.tool_calls import SYNTAXES as NAMES
from inference_engine.contract.tool_calls import ToolCalls
from text.tools.events import CallArguments, CallBegin
from text.tools.parser import ToolParser
from text.tools.syntax import SYNTAXES, Tool, ToolSyntax, syntax_of

TOOLS = [Tool(name=name, schema=Raw(b"{}")) for name in ("f", "g")]


@pytest.mark.parametrize(
    ("template", "knows_tools", "setting", "name"),
    [
        ("... <tool_call> ...", True, "", "hermes"),
        ("{{ messages }}", False, "", "hermes"),
        (None, False, "", "hermes"),
        ("<|python_tag|>", True, "", "llama3"),
        ("Environment: ipython", True, "", "llama3"),
        ("[TOOL_CALLS] [", True, "", "mistral"),
        ("[TOOL_CALLS]f[ARGS]", True, "", "mistral_args"),
        ("{{ tools | tojson }}", True, "", "json"),
        ("<tool_call>", True, "llama3", "llama3"),
        ("<tool_call>", True, "unheard of", "hermes"),
    ],
)
def test_the_template_tells_unless_the_engine_does(
    template: str | None, knows_tools: bool, setting: str, name: str
) -> None:
    assert syntax_of(template, knows_tools=knows_tools, setting=setting).name == name


def test_an_engine_can_name_every_syntax() -> None:
    assert set(NAMES) == set(SYNTAXES)


def written(calls: ToolCalls, arguments: list[str]) -> str:
    """What the grammar asks for, the tools in turn."""
    forms = [calls.forms[index % len(calls.forms)] for index in range(len(arguments))]
    texts = [form.begin + value + form.end for form, value in zip(forms, arguments, strict=True)]
    return calls.prefix + calls.separator.join(texts) + calls.suffix


@pytest.mark.parametrize("syntax", SYNTAXES.values(), ids=lambda syntax: syntax.name)
@pytest.mark.parametrize("num_calls", [1, 3])
def test_forced_calls_are_read_back(syntax: ToolSyntax, num_calls: int) -> None:
    if num_calls > 1 and not syntax.takes_several:
        num_calls = 1
    arguments = [f'{{"x": "{index} }}"}}' for index in range(num_calls)]
    text = written(syntax.forced(TOOLS, None), arguments)
    parser = ToolParser(syntax, {"f", "g"})
    parts = [part for character in text for part in parser.push(character)] + parser.finish()
    assert not [part for part in parts if isinstance(part, str)]
    assert [part.name for part in parts if isinstance(part, CallBegin)] == ["f", "g", "f"][:num_calls]
    found = [
        "".join(part.text for part in parts if isinstance(part, CallArguments) and part.index == index)
        for index in range(num_calls)
    ]
    assert found == arguments


def test_one_call_needs_no_array() -> None:
    assert written(SYNTAXES["json"].forced(TOOLS, 1), ["{}"]) == '{"name": "f", "arguments": {}}'
    assert written(SYNTAXES["mistral"].forced(TOOLS, 1), ["{}"]).endswith("}]")
    assert SYNTAXES["llama3"].forced(TOOLS, None).max_calls == 1
