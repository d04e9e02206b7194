"""Every keyword is served, or refused by its name; none is ignored."""

import json
from typing import Any

import pytest

from inference_engine.constraints.errors import ConstraintError
from inference_engine.constraints.formats import EXACT_IN_LLGUIDANCE, PATTERNS
from inference_engine.constraints.schema_keywords import checked_schema
from inference_engine.constraints.schema_source import MAX_NESTING, MAX_SOURCE_CHARACTERS, parse_schema
from inference_engine.contract.codes import Code
from inference_engine.contract.requests import ConstraintKind
from schema_suite import accepts

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
REFUSED = {
    "not": {},
    "if": {},
    "then": {},
    "else": {},
    "contains": {},
    "minContains": 0,
    "maxContains": 1,
    "uniqueItems": True,
    "propertyNames": {},
    "dependencies": {},
    "dependentRequired": {},
    "dependentSchemas": {},
    "unevaluatedItems": False,
    "unevaluatedProperties": False,
    "$dynamicRef": "#x",
    "$dynamicAnchor": "x",
    "$recursiveRef": "#",
    "$vocabulary": {},
    "contentEncoding": "base64",
    "contentMediaType": "application/json",
    "additionalItems": False,
    "nullable": True,
    "id": "x",
    "requierd": ["a"],
    "x-guidance": {"lenient": True},
}


@pytest.mark.parametrize("keyword", REFUSED)
@pytest.mark.parametrize("wrap", ["root", "properties", "items", "anyOf", "$defs"])
def test_an_unsupported_keyword_is_named_wherever_it_stands(keyword: str, wrap: str) -> None:
    inner = {"type": "string", keyword: REFUSED[keyword]}
    schema = {
        "root": inner,
        "properties": {"properties": {"p": inner}},
        "items": {"items": inner},
        "anyOf": {"anyOf": [True, inner]},
        "$defs": {"$defs": {"d": inner}},
    }[wrap]
    with pytest.raises(ConstraintError) as refusal:
        checked_schema(schema)
    assert f"'{keyword}'" in refusal.value.message
    assert refusal.value.code is Code.INVALID_REQUEST


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"type": "hiccup"}, "'type'"),
        ({"type": 123}, "'type'"),
        ({"type": []}, "'type'"),
        ({"$ref": "#/nope"}, "'$ref'"),
        ({"$ref": "http://example.com/s"}, "'$ref'"),
        ({"$ref": "#/const", "const": {"not": {}}}, "'$ref'"),
        ({"enum": []}, "'enum'"),
        ({"enum": ["\x00"]}, "'enum'"),
        ({"const": {"\x7f": 1}}, "'const'"),
        ({"minLength": -1}, "'minLength'"),
        ({"maxItems": True}, "'maxItems'"),
        ({"maxItems": 1.5}, "'maxItems'"),
        ({"minimum": "1"}, "'minimum'"),
        ({"exclusiveMinimum": True}, "'exclusiveMinimum'"),
        ({"multipleOf": 0.01}, "'multipleOf'"),
        ({"multipleOf": 0}, "'multipleOf'"),
        ({"multipleOf": 99_999_999}, "'multipleOf'"),
        ({"required": "a"}, "'required'"),
        ({"properties": []}, "'properties'"),
        ({"properties": {f"p{i}": True for i in range(401)}}, "'properties'"),
        ({"anyOf": []}, "'anyOf'"),
        ({"items": [{}]}, "object or a boolean"),
        ({"minProperties": 2}, "'minProperties'"),
        ({"format": "regex"}, "'format'"),
        ({"format": "nope"}, "'format'"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "'$schema'"),
        ({"$schema": DRAFT_7, "prefixItems": [True]}, "'prefixItems'"),
        ({"properties": {"a": {"$id": "x"}}}, "'$id'"),
        ({"patternProperties": {"\\x41": True, "\\u0041": True}}, "'patternProperties'"),
        ({"anyOf": [True] * 2_001}, "subschemas"),
        (False, "'false'"),
        ([], "object or a boolean"),
    ],
)
def test_what_cannot_hold_is_refused_with_its_name(schema: Any, named: str) -> None:
    with pytest.raises(ConstraintError) as refusal:
        checked_schema(schema)
    assert named in refusal.value.message


def test_annotations_are_dropped_and_nothing_else() -> None:
    schema = {
        "title": "t",
        "description": "d",
        "default": 1,
        "examples": [1],
        "type": "integer",
        "minimum": 2.0,
    }
    assert checked_schema(schema) == {"type": "integer", "minimum": 2.0}
    assert checked_schema({"properties": {"title": {"type": "string", "title": "T"}}}) == {
        "properties": {"title": {"type": "string"}}
    }


def test_sizes_may_be_whole_floats() -> None:
    assert checked_schema({"minLength": 2.0}) == {"minLength": 2}


def test_items_as_a_list_is_for_the_dialects_that_have_it() -> None:
    assert checked_schema({"$schema": DRAFT_7, "items": [{}]}) == {"$schema": DRAFT_7, "items": [{}]}


def test_references_lead_to_schemas_by_pointer_and_anchor() -> None:
    schema = {
        "$defs": {"a/b": {"$anchor": "here", "type": "null"}},
        "anyOf": [{"$ref": "#/$defs/a~1b"}, {"$ref": "#here"}, {"$ref": "#"}],
    }
    assert checked_schema(schema) == schema


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("{", "not valid JSON"),
        ('{"minimum": NaN}', "NaN"),
        ('{"minimum": 1e999}', "too large"),
        ('{"const": "\\ud800"}', "surrogate"),
        ('{"const": "' + "a" * MAX_SOURCE_CHARACTERS + '"}', "characters"),
        ("[" * 100_000, "not valid JSON"),
        ('{"items":' * (MAX_NESTING + 1) + "{}" + "}" * (MAX_NESTING + 1), "levels deep"),
    ],
)
def test_the_source_has_limits(source: str, named: str) -> None:
    with pytest.raises(ConstraintError, match=named):
        parse_schema(source)


def test_a_property_cannot_be_spelt_around_its_schema(make_matcher, vocabulary) -> None:
    r"""As "\u0061" it would be an additional property for the grammar, and "a" for whoever reads it."""
    schema = {
        "properties": {"a": {"type": "integer"}},
        "additionalProperties": {"type": "string"},
        "type": "object",
    }
    matcher = make_matcher(ConstraintKind.JSON_SCHEMA, schema)
    texts = ['{"a":1}', '{"b":"x"}', '{"\\u0061":"x"}', '{"a":"x"}']
    accepted = [text for text in texts if accepts(matcher, vocabulary.tokenizer.tokenize_str(text))]
    assert accepted == texts[:2]


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        (
            "date",
            ["2024-02-29", "2000-02-29", "1999-12-31"],
            ["2023-02-29", "2100-02-29", "2024-04-31", "2024-13-01"],
        ),
        ("time", ["23:59:59Z", "00:00:00.5+01:30"], ["23:59:60Z", "24:00:00Z", "12:00:00"]),
        ("date-time", ["2024-02-29T12:00:00Z"], ["2023-02-29T12:00:00Z", "2024-02-29 12:00:00Z"]),
        ("hostname", ["a.example-site.com", "localhost"], ["xn--x", "-a", "a-", "a..b", "a" * 64]),
    ],
)
def test_formats_of_our_own_are_exact(
    name: str, good: list[str], bad: list[str], make_matcher, vocabulary
) -> None:
    matcher = make_matcher(ConstraintKind.JSON_SCHEMA, {"type": "string", "format": name})
    accepted = [
        text for text in good + bad if accepts(matcher, vocabulary.tokenizer.tokenize_str(json.dumps(text)))
    ]
    assert accepted == good


def test_a_format_and_a_pattern_both_hold(make_matcher, vocabulary) -> None:
    schema = {"type": "string", "format": "date", "pattern": "^2024"}
    matcher = make_matcher(ConstraintKind.JSON_SCHEMA, schema)
    texts = ['"2024-01-01"', '"2023-01-01"', '"2024-1"']
    assert [accepts(matcher, vocabulary.tokenizer.tokenize_str(text)) for text in texts] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("name", sorted(EXACT_IN_LLGUIDANCE | PATTERNS.keys()))
def test_every_format_listed_compiles(name: str, make_matcher) -> None:
    assert not make_matcher(ConstraintKind.JSON_SCHEMA, {"type": "string", "format": name}).is_accepting
