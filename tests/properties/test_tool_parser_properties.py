"""However an output is cut, its calls and its content are the same, and nothing is lost."""

from hypothesis import given
from hypothesis import strategies as st

from text.tools.events import CallArguments, CallBegin, CallEnd, ParsedPart
from text.tools.parser import ToolParser
from text.tools.syntax import SYNTAXES

PIECES = (
    "<tool_call>",
    "</tool_call>",
    "[TOOL_CALLS]",
    "[ARGS]",
    "<|python_tag|>",
    "```json",
    "```",
    "<tool",
    "[TOOL",
    '{"name": "f", "arguments": {"a": "}"}}',
    '{"name": "g", "parameters": {}}',
    '{"arguments": {}, "name": "f"}',
    '{"name": "f", "arguments": {"a"',
    '{"name": "nobody", "arguments": {}}',
    "[",
    "]",
    "{",
    "}",
    ",",
    ";",
    '"',
    "\\",
    "\n",
    " ",
    "f",
    "text",
    "é😀",
)
OUTPUTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(max_size=30)


def joined(parts: list[ParsedPart]) -> list[object]:
    """Ids left out, neighbours of one kind together."""
    found: list[object] = []
    for part in parts:
        match part:
            case str() if found and isinstance(found[-1], str):
                found[-1] += part
            case CallArguments(index, text) if found and isinstance(found[-1], CallArguments):
                found[-1] = CallArguments(index, found[-1].text + text)
            case CallBegin(index, _, name):
                found.append((index, name))
            case _:
                found.append(part)
    return found


def parsed(name: str, pieces: list[str]) -> list[object]:
    parser = ToolParser(SYNTAXES[name], {"f", "g"})
    parts = [part for piece in pieces for part in parser.push(piece)] + parser.finish()
    assert "" not in parts
    return joined(parts)


@given(st.sampled_from(sorted(SYNTAXES)), OUTPUTS, st.data())
def test_cuts_make_no_difference(name: str, text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert parsed(name, [text]) == parsed(name, pieces) == parsed(name, list(text))


@given(st.sampled_from(sorted(SYNTAXES)), OUTPUTS)
def test_without_a_call_the_content_is_the_output(name: str, text: str) -> None:
    parts = parsed(name, [text])
    if all(isinstance(part, str) for part in parts):
        assert "".join(map(str, parts)) == text


@given(st.sampled_from(sorted(SYNTAXES)), OUTPUTS)
def test_calls_begin_and_end_once_in_order(name: str, text: str) -> None:
    parts = parsed(name, [text])
    begun = [part[0] for part in parts if isinstance(part, tuple)]
    ended = [part.index for part in parts if isinstance(part, CallEnd)]
    assert begun == ended == list(range(len(begun)))
    for part in parts:
        assert not isinstance(part, CallArguments) or part.text in text or part.text == "{}"
