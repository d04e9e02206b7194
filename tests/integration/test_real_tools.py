"""Tools as people describe them (the Berkeley leaderboard's): shown, forced, and their calls read back."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from inference_engine.constraints.errors import ConstraintError
from inference_engine.constraints.grammars import grammar_of
from inference_engine.constraints.vocabulary import load_vocabulary
from inference_engine.execution.models.model_files import load_model_files
from requirements_of_tests import require
from stand_ins.tiny_text import SHARED_DATA, description_of_files
from text.model_text import ModelText
from text.tools.events import CallArguments, CallBegin
from text.tools.parser import ToolParser
from text.tools.syntax import HERMES, SYNTAXES, Tool, ToolSyntax

TYPES = {"dict": "object", "float": "number", "tuple": "array"}
FILES = ("simple_python", "live_simple", "multiple", "parallel")


def lines_of(name: str) -> Iterator[dict[str, Any]]:
    path = SHARED_DATA / "bfcl" / f"{name}.json"
    require(path.is_file(), "the function calling data is not here")
    return map(json.loads, path.read_text().splitlines())


def portable(schema: Any) -> Any:
    """Their names of types as JSON Schema has them."""
    if isinstance(schema, list):
        return [portable(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {key: portable(value) for key, value in schema.items()}
    if changed.get("type") == "any":
        del changed["type"]
    elif isinstance(changed.get("type"), str):
        changed["type"] = TYPES.get(changed["type"], changed["type"])
    return changed


def functions(name: str) -> Iterator[dict[str, Any]]:
    for line in lines_of(name):
        for function in line["function"]:
            yield function | {"name": plain(function["name"]), "parameters": portable(function["parameters"])}


def plain(name: str) -> str:
    """The interface allows no dots."""
    return name.replace(".", "_")


def test_nearly_every_schema_can_be_forced_and_the_others_say_why(smollm2_dir: Path) -> None:
    files = load_model_files(smollm2_dir)
    vocabulary = load_vocabulary(files.tokenizer_json, vocab_size=files.vocab_size, end_ids=files.end_ids)
    refusals, num_forced = [], 0
    for function in (one for name in FILES for one in functions(f"BFCL_v4_{name}")):
        tool = Tool(name=function["name"], schema=Raw(json.dumps(function["parameters"]).encode()))
        try:
            grammar_of(HERMES.forced([tool], 1).constraint(), vocabulary)
            num_forced += 1
        except ConstraintError as error:
            refusals.append(error.message)
    assert num_forced > 1380
    assert all("'optional' is not supported" in message for message in refusals)


async def test_every_question_becomes_a_prompt_that_shows_its_tools(smollm2_dir: Path) -> None:
    text = ModelText.from_description(description_of_files(smollm2_dir))
    for line in lines_of("BFCL_v4_live_simple"):
        tools = [{"type": "function", "function": portable(function)} for function in line["function"]]
        ids = await text.render_chat(line["question"][0], tools=tools)
        shown = text.decode(ids)
        assert all(f'"name": "{function["name"]}"' in shown for function in line["function"])


def answers() -> list[tuple[str, str]]:
    """(function, arguments as JSON)"""
    found = []
    for line in lines_of("possible_answer_BFCL_v4_simple_python"):
        for name, arguments in line["ground_truth"][0].items():
            chosen = {key: values[0] for key, values in arguments.items()}
            found.append((plain(name), json.dumps(chosen, ensure_ascii=False)))
    return found


@pytest.mark.parametrize("syntax", SYNTAXES.values(), ids=lambda syntax: syntax.name)
def test_right_calls_are_read_back_in_every_syntax(syntax: ToolSyntax) -> None:
    known = answers()
    assert len(known) == 400
    for name, arguments in known:
        form = syntax.forced([Tool(name=name, schema=Raw(b"{}"))], 1)
        text = form.prefix + form.forms[0].begin + arguments + form.forms[0].end + form.suffix
        parser = ToolParser(syntax, {name})
        parts = [part for start in range(0, len(text), 3) for part in parser.push(text[start : start + 3])]
        parts += parser.finish()
        assert [part.name for part in parts if isinstance(part, CallBegin)] == [name]
        assert "".join(part.text for part in parts if isinstance(part, CallArguments)) == arguments
        assert not [part for part in parts if isinstance(part, str)]
