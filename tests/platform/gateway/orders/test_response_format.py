"""From `response_format` to a constraint."""

import json
from typing import Any

import pytest

from gateway.chat.body import ChatBody
from gateway.orders.response_format import constraint_of
from gateway.transport.strict_json import StrictDecoder
from inference_engine.contract.codes import Code
from inference_engine.contract.requests import Constraint, ConstraintKind
from tenants.errors import Denied

decoder = StrictDecoder(ChatBody)


def body(response_format: str) -> bytes:
    return b'{"model": "m", "messages": [], "response_format": ' + response_format.encode() + b"}"


def constraint(response_format: str) -> Constraint | None:
    return constraint_of(decoder.decode(body(response_format)).response_format)


@pytest.mark.parametrize("neutral", ["null", '{"type": "text"}'])
def test_text_is_no_constraint(neutral: str) -> None:
    assert constraint(neutral) is None


def test_any_object() -> None:
    assert constraint('{"type": "json_object"}') == Constraint(kind=ConstraintKind.JSON_OBJECT)


def test_a_schema_crosses_as_it_was_sent() -> None:
    schema = '{ "type":"integer",\n "maximum": 1.0e2, "minimum": 12345678901234567890 }'
    more = '"name": "a-B_9", "strict": true, "description": "numbers"'
    found = constraint('{"type": "json_schema", "json_schema": {"schema": ' + schema + ", " + more + "}}")
    assert found == Constraint(kind=ConstraintKind.JSON_SCHEMA, source=schema)


def wrapped(**fields: Any) -> str:
    return json.dumps({"type": "json_schema", "json_schema": {"name": "n", "schema": {}, **fields}})


@pytest.mark.parametrize(
    ("text", "param"),
    [
        ('{"type": "xml"}', "response_format.type"),
        ("{}", "response_format.type"),
        ('"json_object"', "response_format"),
        ('{"type": "json_object", "schema": {}}', "response_format.schema"),
        ('{"type": "json_schema"}', "response_format.json_schema"),
        ('{"type": "json_schema", "json_schema": {"name": "n"}}', "response_format.json_schema.schema"),
        ('{"type": "json_schema", "json_schema": {"schema": {}}}', "response_format.json_schema.name"),
        (wrapped(schema=None), "response_format.json_schema.schema"),
        (wrapped(schema="{}"), "response_format.json_schema.schema"),
        (wrapped(schema=[{}]), "response_format.json_schema.schema"),
        (wrapped(name="a b"), "response_format.json_schema.name"),
        (wrapped(name="n" * 65), "response_format.json_schema.name"),
        (wrapped(strict="yes"), "response_format.json_schema.strict"),
        (wrapped(type="object"), "response_format.json_schema.type"),
    ],
)
def test_other_shapes_are_refused_where_they_are_wrong(text: str, param: str) -> None:
    with pytest.raises(Denied) as caught:
        constraint(text)
    assert (caught.value.code, caught.value.param) == (Code.INVALID_REQUEST, param)


def test_bytes_that_are_no_text_are_refused() -> None:
    raw = body(wrapped()).replace(b'"schema": {}', b'"schema": {"\xff": 1}')
    with pytest.raises(Denied) as caught:
        constraint_of(decoder.decode(raw).response_format)
    assert caught.value.code is Code.INVALID_JSON
