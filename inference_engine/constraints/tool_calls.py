"""Forced tool calls as one grammar: literals around JSON values of the tools' own schemas.

start: calls                            or, where the model may choose,  calls | @answer
calls: prefix call (separator call)* suffix
call: form_0 | form_1
form_0: begin @arguments_0 end          each @arguments is a grammar of its own, with its schema's root
"""

import json
import re
from collections.abc import Iterator, Mapping

import msgspec

from inference_engine.contract.tool_calls import ToolCalls, read_tool_calls

from .errors import ConstraintError
from .json_options import JSON_OPTIONS
from .schema_keywords import checked_schema
from .schema_source import parse_schema
from .vocabulary import Vocabulary


def grammar_of_tool_calls(source: str, vocabulary: Vocabulary) -> str:
    """Raises ConstraintError, also for a literal that spells an end id: sampling it would end the output."""
    try:
        calls = read_tool_calls(source)
    except msgspec.MsgspecError as error:
        raise ConstraintError(f"tool calls: {error}") from error
    grammars: list[dict[str, object]] = [{"lark_grammar": _lark(calls, vocabulary)}]
    schemas = [(f"arguments_{index}", form.schema) for index, form in enumerate(calls.forms)]
    for name, raw in [*schemas, *(("answer", raw) for raw in calls.answer)]:
        schema = checked_schema(parse_schema(bytes(raw).decode()))
        grammars.append({"name": name, "json_schema": {**schema, "x-guidance": JSON_OPTIONS}})
    return json.dumps({"grammars": grammars})


def _lark(calls: ToolCalls, vocabulary: Vocabulary) -> str:
    def literal(text: str) -> str:
        return " ".join(_terms(text, vocabulary))

    in_order = [
        literal(calls.prefix),
        "call",
        _more(literal(calls.separator), calls.max_calls),
        literal(calls.suffix),
    ]
    rules = [
        "start: calls | @answer" if calls.answer else "start: calls",
        f"calls: {' '.join(in_order)}",
        "call: " + " | ".join(f"form_{index}" for index in range(len(calls.forms))),
    ]
    for index, form in enumerate(calls.forms):
        rules.append(f"form_{index}: {literal(form.begin)} @arguments_{index} {literal(form.end)}")
    return "\n".join(rules)


def _more(separator: str, max_calls: int | None) -> str:
    """The calls after the first."""
    if max_calls is None:
        return f"({separator} call)*"
    return f"({separator} call){{0,{max_calls - 1}}}" if max_calls > 1 else ""


def _terms(text: str, vocabulary: Vocabulary) -> Iterator[str]:
    """Added tokens by their id, what is between them as strings."""
    added = vocabulary.added_tokens
    for part in _split(text, added):
        if added.get(part) in vocabulary.end_ids:
            raise ConstraintError(f"tool calls: the end token {part!r} can't be a part of them")
        yield f"<[{added[part]}]>" if part in added else json.dumps(part, ensure_ascii=False)


def _split(text: str, added: Mapping[str, int]) -> list[str]:
    """The longest added token at each place counts."""
    found = [re.escape(content) for content in sorted(added, key=len, reverse=True) if content in text]
    parts = re.split(f"({'|'.join(found)})", text) if found else [text]
    return [part for part in parts if part]
