"""Calls in every style, in one piece and character by character; what is no call stays content."""

import pytest

from text.tools.events import CallArguments, CallBegin, CallEnd, ParsedPart
from text.tools.parser import ToolParser
from text.tools.syntax import HERMES, JSON, LLAMA3, MISTRAL, MISTRAL_ARGS, ToolSyntax

Shown = tuple[str, str, bool] | str
"""Name, arguments, whether complete; or content."""


def parse(syntax: ToolSyntax, pieces: list[str] | str) -> list[Shown]:
    """`pieces` may be a text: its characters one by one."""
    parser = ToolParser(syntax, {"f", "g", "get_weather"})
    parts: list[ParsedPart] = []
    for piece in pieces:
        parts += parser.push(piece)
    return shown(parts + parser.finish())


def shown(parts: list[ParsedPart]) -> list[Shown]:
    found: list[Shown] = []
    calls = arguments = 0
    for part in parts:
        match part:
            case str():
                found[-1:] = (
                    [found[-1] + part] if found and isinstance(found[-1], str) else [*found[-1:], part]
                )
            case CallBegin(index, call_id, name):
                assert index == calls and call_id
                calls, arguments = calls + 1, ""
                begun = name
            case CallArguments(index, text):
                assert index == calls - 1 and text
                arguments += text
            case CallEnd(index, is_complete):
                assert index == calls - 1
                found.append((begun, arguments, is_complete))
    return found


def both_ways(syntax: ToolSyntax, text: str) -> list[Shown]:
    whole = parse(syntax, [text])
    assert parse(syntax, text) == whole
    return whole


F = '{"name": "f", "arguments": {"a": 1}}'
G = '{"name": "g", "arguments": {}}'
CALL_F = ("f", '{"a": 1}', True)
CALL_G = ("g", "{}", True)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (f"<tool_call>\n{F}\n</tool_call>", [CALL_F]),
        (f"<tool_call>{F}</tool_call>\n<tool_call>{G}</tool_call>", [CALL_F, CALL_G]),
        (f"Let me look.\n\n<tool_call>\n{F}\n</tool_call>\n", ["Let me look.", CALL_F]),
        (f"<tool_call>\n{F}\n</tool_call>\nThere.", [CALL_F, "There."]),
        (f"<tool_call>[{F}, {G}]</tool_call>", [CALL_F, CALL_G]),
        ('<tool_call>{"arguments": {"a": 1}, "name": "f"}</tool_call>', [CALL_F]),
        (
            '<tool_call>{"type": "function", "function": {"name": "g", "arguments": "{}"}}</tool_call>',
            [CALL_G],
        ),
        ('<tool_call>{"name": "f", "arguments": {"a": 1}, "id": "x}"}</tool_call>', [CALL_F]),
        ('<tool_call>{"name": "f", "arguments": {"a": 1}</tool_call>', [CALL_F]),
        (
            '<tool_call>{"name": "f", "arguments": {"s": "</tool_call> }\\" é"}}</tool_call>',
            [("f", '{"s": "</tool_call> }\\" é"}', True)],
        ),
        ('<tool_call>{"name": "f", "arguments": {"a": [{"b":', [("f", '{"a": [{"b":', False)]),
        ('<tool_call>{"name": "g"}</tool_call>', [CALL_G]),
    ],
)
def test_hermes(text: str, parts: list[Shown]) -> None:
    assert both_ways(HERMES, text) == parts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('{"name": "f", "parameters": {"a": 1}}', [CALL_F]),
        (f"\n<|python_tag|>{F}; {G}", [CALL_F, CALL_G]),
        (f"{F}\nDone.", [CALL_F, "Done."]),
        ('{"answer": {"name": "f"}}', ['{"answer": {"name": "f"}}']),
        ('<|python_tag|>print("f")', ['<|python_tag|>print("f")']),
        (f"See {F}", [f"See {F}"]),
    ],
)
def test_llama(text: str, parts: list[Shown]) -> None:
    assert both_ways(LLAMA3, text) == parts


@pytest.mark.parametrize(
    ("syntax", "text", "parts"),
    [
        (MISTRAL, f"[TOOL_CALLS][{F}, {G}]", [CALL_F, CALL_G]),
        (MISTRAL, f"[TOOL_CALLS] {F}", [CALL_F]),
        (MISTRAL, f"Well. [TOOL_CALLS][{F}", ["Well.", CALL_F]),
        (MISTRAL, "[TOOL_CALLS][1]", ["[TOOL_CALLS][1]"]),
        (MISTRAL_ARGS, '[TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[CALL_ID]abc[ARGS]{}', [CALL_F, CALL_G]),
        (MISTRAL_ARGS, "[TOOL_CALLS]nobody[ARGS]{}", ["[TOOL_CALLS]nobody[ARGS]{}"]),
        (MISTRAL_ARGS, "[TOOL_CALLS]f is", ["[TOOL_CALLS]f is"]),
    ],
)
def test_mistral(syntax: ToolSyntax, text: str, parts: list[Shown]) -> None:
    assert both_ways(syntax, text) == parts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (F, [CALL_F]),
        (f"[{F},\n{G}]", [CALL_F, CALL_G]),
        (f"```json\n[{F}]\n```\nThat's it.", [CALL_F, "That's it."]),
        (f"```\n{F}\n```", [CALL_F]),
        ("```python\nf(1)\n```", ["```python\nf(1)\n```"]),
        ("[1, 2]", ["[1, 2]"]),
        ('{"name": "nobody", "arguments": {}}', ['{"name": "nobody", "arguments": {}}']),
        ('{"names": []}', ['{"names": []}']),
        ("  Hello {", ["  Hello {"]),
    ],
)
def test_generic_json(text: str, parts: list[Shown]) -> None:
    assert both_ways(JSON, text) == parts


@pytest.mark.parametrize("syntax", [HERMES, LLAMA3, MISTRAL, MISTRAL_ARGS, JSON])
@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "No call at all.",
        "a < b and [c] { d } <tool",
        "<tool_cal",
        "[TOOL_CALL",
        "<|python",
        "``",
        '{"name": "f", "argu',
        '<tool_call>{"name": "f", "argu',
        "<tool_call>\n",
        '<tool_call>{"name": "nobody", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "f", "arguments": 7}</tool_call>',
        '<tool_call>{"name": "f", "arguments": "\\ud83d"}</tool_call>',
        '<tool_call>{"name": "f" "arguments": {}}</tool_call>',
        '<tool_call>{"name": NaN}</tool_call>',
        "<tool_call>f(1)</tool_call>",
        "[TOOL_CALLS]{}",
        "[TOOL_CALLS][]",
        '[{"name": ["f"]}]',
        "{" * 3000,
        '{"name":' + "[" * 3000 + "]" * 3000 + "}",
    ],
)
def test_what_is_no_call_stays_content_to_the_last_character(syntax: ToolSyntax, text: str) -> None:
    assert "".join(map(str, both_ways(syntax, text))) == text


def test_a_call_behind_a_failed_one_is_found() -> None:
    assert both_ways(HERMES, f"<tool_call>oops <tool_call>{F}</tool_call>") == ["<tool_call>oops", CALL_F]


def test_nothing_of_a_marker_is_let_out_and_text_is_at_once() -> None:
    parser = ToolParser(HERMES, {"f"})
    assert parser.push("It is ") == ["It is"]
    assert parser.push("x <tool") == [" x"]
    assert parser.push("_call>") == []
    assert parser.push('{"name": "f", ') == []
    begun = parser.push('"arguments": {"a":')
    assert [type(part) for part in begun] == [CallBegin, CallArguments]
    assert parser.push(" 1") == [CallArguments(0, " 1")]
    assert parser.push("}}</tool") == [CallArguments(0, "}"), CallEnd(0, is_complete=True)]
    assert parser.push("_call>\n") == []
    assert parser.finish() == []


def test_other_json_is_let_out_as_soon_as_it_can_be_no_call() -> None:
    parser = ToolParser(JSON, {"f"})
    assert parser.push('{"na') == []
    assert parser.push('tion": ') == ['{"nation": ']


def test_ids_are_as_templates_take_them() -> None:
    assert {len(MISTRAL.new_id()) for _ in range(20)} == {9}
    assert MISTRAL.new_id().isalnum()
    assert HERMES.new_id().startswith("call_") and HERMES.new_id() != HERMES.new_id()
