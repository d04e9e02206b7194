"""Forced tool calls in the formats of the usual models, written by a model of random logits."""

import json
import re
import time
from typing import Any

import pytest
from msgspec import Raw, structs

from inference_engine.constraints.building import build
from inference_engine.constraints.errors import ConstraintError
from inference_engine.constraints.grammars import grammar_of
from inference_engine.constraints.matcher import Matcher
from inference_engine.constraints.vocabulary import Vocabulary, load_vocabulary
from inference_engine.contract.requests import Constraint, ConstraintKind
from inference_engine.contract.tool_calls import CallForm, ToolCalls
from random_model import RandomModel, Written
from schema_suite import fault_of
from stand_ins.tiny_text import CHATML_TOKENS, byte_level_tokenizer

CONTROL = ("<tool_call>", "[TOOL_CALLS]", "[ARGS]")
PARAMETERS: dict[str, dict[str, Any]] = {
    "get_weather": {
        "type": "object",
        "properties": {"city": {"$ref": "#/$defs/name"}, "unit": {"enum": ["c", "f"]}},
        "required": ["city", "unit"],
        "additionalProperties": False,
        "$defs": {"name": {"type": "string", "maxLength": 5}},
    },
    "add": {
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": -99, "maximum": 99}, "b": {"type": "boolean"}},
        "required": ["a"],
        "additionalProperties": False,
    },
    "now": {"type": "object", "additionalProperties": False},
}
NUM_VALUES = 12
MAX_TOKENS = 1500


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    """`</tool_call>` is an added token that isn't special, as Qwen's is."""
    raw = byte_level_tokenizer((*CHATML_TOKENS, *CONTROL), ordinary=("</tool_call>", "<tool"))
    ids = {token["content"]: token["id"] for token in json.loads(raw)["added_tokens"]}
    return load_vocabulary(raw, vocab_size=max(ids.values()) + 1, end_ids=[ids["<|im_end|>"]])


def forms(begin: str, end: str) -> tuple[CallForm, ...]:
    return tuple(
        CallForm(begin=begin % name, schema=Raw(json.dumps(schema).encode()), end=end)
        for name, schema in PARAMETERS.items()
    )


STYLES = {
    "hermes": ToolCalls(
        forms=forms('<tool_call>\n{"name": "%s", "arguments": ', "}\n</tool_call>"),
        separator="\n",
        max_calls=3,
    ),
    "llama": ToolCalls(forms=forms('{"name": "%s", "parameters": ', "}"), max_calls=1),
    "mistral": ToolCalls(
        forms=forms('{"name": "%s", "arguments": ', "}"),
        prefix="[TOOL_CALLS][",
        separator=", ",
        suffix="]",
        max_calls=3,
    ),
    "newer mistral": ToolCalls(forms=forms("[TOOL_CALLS]%s[ARGS]", ""), max_calls=3),
}
ONE_CALL = {
    "hermes": r'\n?<tool_call>\n\{"name": "(\w+)", "arguments": (.*?)\}\n</tool_call>',
    "llama": r'\{"name": "(\w+)", "parameters": (.*)\}',
    "mistral": r'(?:\[TOOL_CALLS\]\[|, )\{"name": "(\w+)", "arguments": (.*?)\}(?=, \{"name|\]$)',
    "newer mistral": r"\[TOOL_CALLS\](\w+)\[ARGS\](.*?)(?=\[TOOL_CALLS\]|$)",
}


def matcher_of(constraint: Constraint, vocabulary: Vocabulary) -> Matcher:
    return Matcher(build(grammar_of(constraint, vocabulary), vocabulary.tokenizer), vocabulary)


def refusal(calls: ToolCalls, vocabulary: Vocabulary) -> str:
    with pytest.raises(ConstraintError) as refused:
        matcher_of(calls.constraint(), vocabulary)
    return refused.value.message


def written(calls: ToolCalls, vocabulary: Vocabulary, count: int = NUM_VALUES) -> list[Written]:
    model, matcher = RandomModel(vocabulary, seed=3), matcher_of(calls.constraint(), vocabulary)
    found = []
    for _ in range(count):
        found.append(model.write(matcher, MAX_TOKENS))
        matcher.roll_back(matcher.num_consumed)
    return [each for each in found if each.has_ended]


@pytest.mark.parametrize("style", STYLES)
def test_every_output_is_calls_with_valid_arguments(style: str, vocabulary: Vocabulary) -> None:
    calls, pattern = STYLES[style], ONE_CALL[style]
    finished = written(calls, vocabulary)
    assert len(finished) > NUM_VALUES // 2
    names: list[str] = []
    for value in finished:
        found = re.findall(pattern, value.text, re.DOTALL)
        assert 1 <= len(found) <= (calls.max_calls or 99)
        for name, arguments in found:
            assert fault_of(PARAMETERS[name], arguments) == ""
        names += [name for name, _ in found]
        assert re.sub(pattern, "", value.text, flags=re.DOTALL) == calls.suffix
    assert set(names) == set(PARAMETERS)


def test_more_than_one_call_comes_and_no_more_than_the_most(vocabulary: Vocabulary) -> None:
    calls = STYLES["hermes"]
    counts = {value.text.count("<tool_call>") for value in written(calls, vocabulary, 40)}
    assert {1, 2} <= counts <= {1, 2, 3}


@pytest.mark.parametrize("style", ["hermes", "llama"])
def test_an_answer_may_come_instead(style: str, vocabulary: Vocabulary) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "boolean"}}, "additionalProperties": False}
    calls = structs.replace(STYLES[style], answer=(Raw(json.dumps(schema).encode()),))
    finished = written(calls, vocabulary, 60)
    answers = [value.text for value in finished if not re.match(ONE_CALL[style], value.text, re.DOTALL)]
    assert 0 < len(answers) < len(finished)
    assert [fault_of(schema, text) for text in answers] == [""] * len(answers)
    broken = structs.replace(STYLES[style], answer=(Raw(b'{"type": "hiccup"}'),))
    assert "hiccup" in refusal(broken, vocabulary)


def test_an_added_token_in_a_literal_is_that_one_token(vocabulary: Vocabulary) -> None:
    calls = STYLES["hermes"]
    opening, closing = vocabulary.added_tokens["<tool_call>"], vocabulary.added_tokens["</tool_call>"]
    for value in written(calls, vocabulary):
        assert value.token_ids.count(opening) == value.text.count("<tool_call>")
        assert value.token_ids.count(closing) == value.text.count("</tool_call>")


def test_a_named_tool_is_called_once(vocabulary: Vocabulary) -> None:
    schema = Raw(json.dumps(PARAMETERS["now"]).encode())
    calls = ToolCalls(forms=(CallForm(begin="call now with ", schema=schema, end="!"),), max_calls=1)
    finished = written(calls, vocabulary)
    assert finished
    assert all(re.fullmatch(r"call now with \{\s*\}!", value.text) for value in finished)


def test_literals_are_text_whatever_they_hold(vocabulary: Vocabulary) -> None:
    begin = 'a "quoted" \\ line\n\t{%} é 😀 @arguments_0 <[1]> // # '
    calls = ToolCalls(forms=(CallForm(begin=begin, schema=Raw(b'{"const": 1}'), end=""),), max_calls=1)
    [value, *_] = written(calls, vocabulary)
    assert value.text == f"{begin}1"


@pytest.mark.parametrize(
    ("begin", "schema", "named"),
    [
        ("", b'{"not": {}}', "'not'"),
        ("", b'{"$ref": "#/nope"}', "nope"),
        ("", b"false", "false"),
        ("<|im_end|>", b"{}", "im_end"),
    ],
)
def test_what_cannot_be_enforced_is_refused_by_name(
    begin: str, schema: bytes, named: str, vocabulary: Vocabulary
) -> None:
    assert named in refusal(ToolCalls(forms=(CallForm(begin=begin, schema=Raw(schema), end=""),)), vocabulary)


@pytest.mark.parametrize("source", ["", "{}", '{"forms": []}', '{"forms": [{"begin": "a"}]}', '{"forms": 1}'])
def test_a_malformed_source_is_refused(source: str, vocabulary: Vocabulary) -> None:
    with pytest.raises(ConstraintError, match="tool calls"):
        matcher_of(Constraint(kind=ConstraintKind.TOOL_CALLS, source=source), vocabulary)


def test_a_hundred_tools_compile_quickly_and_are_all_there(smollm2_vocabulary: Vocabulary) -> None:
    """On a real vocabulary; the ceiling is far above the hundredth of a second that it takes."""
    schema = {
        "type": "object",
        "properties": {
            f"p{index}": {"type": ["string", "number", "array"][index % 3]} for index in range(10)
        },
        "required": ["p0"],
        "additionalProperties": False,
    }
    raw = Raw(json.dumps(schema).encode())
    calls = ToolCalls(
        forms=tuple(CallForm(begin=f"<t>tool_{n}(", schema=raw, end=")</t>") for n in range(100)),
        separator="\n",
    )
    started = time.perf_counter()
    matcher = matcher_of(calls.constraint(), smollm2_vocabulary)
    assert time.perf_counter() - started < 5
    for number in (0, 57, 99):
        text = f'<t>tool_{number}({{"p0": "x"}})</t>'
        matcher.follow(smollm2_vocabulary.tokenizer.tokenize_str(text))
        assert matcher.is_accepting
        matcher.roll_back(matcher.num_consumed)
