"""The OpenAPI document, docs/api.md and what the code does tell the same."""

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from gateway.errors import SHAPES
from gateway.openapi.document import document_of
from gateway.openapi.listed import OPERATIONS
from gateway.openapi.operation import Operation
from gateway.routes import PATTERNS, ROUTES
from inference_engine.contract.codes import Code

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "api.md").read_text()
DOCUMENT = document_of(OPERATIONS, "1")


def served() -> set[tuple[str, str]]:
    """(method, path or pattern of one)"""
    fixed = {(method, path) for path, methods in ROUTES.items() for method in methods}
    patterns = {(method, pattern.pattern) for pattern, methods in PATTERNS for method in methods}
    return {(method, path) for method, path in fixed | patterns if method != "HEAD"}


def route_of(operation: Operation) -> tuple[str, str]:
    if operation.path in ROUTES:
        return operation.method, operation.path
    path = re.sub(r"\{\w+\}", "x", operation.path)
    [pattern] = [pattern for pattern, _ in PATTERNS if pattern.fullmatch(path)]
    return operation.method, pattern.pattern


def test_every_route_is_in_the_document_once() -> None:
    routes = [route_of(operation) for operation in OPERATIONS]
    assert len(set(routes)) == len(routes)
    assert set(routes) == served()
    shown = {(method.upper(), path) for path, one in DOCUMENT["paths"].items() for method in one}
    assert shown == {(operation.method, operation.path) for operation in OPERATIONS}


def test_every_operation_is_on_the_page() -> None:
    for operation in OPERATIONS:
        path = re.sub(r"\{\w+\}", "{id}", operation.path)
        assert re.search(rf"`{operation.method} [^`]*{re.escape(path)}`", PAGE), (operation.method, path)


def body_schema(operation: Operation) -> dict[str, Any]:
    described = DOCUMENT["paths"][operation.path][operation.method.lower()]
    reference = described["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    return dict(DOCUMENT["components"]["schemas"][reference.rpartition("/")[2]])


def with_body() -> list[Any]:
    return [pytest.param(one, id=one.path) for one in OPERATIONS if one.body is not None]


@pytest.mark.parametrize("operation", with_body())
def test_fields_are_those_of_the_decoder(operation: Operation) -> None:
    schema = body_schema(operation)
    assert set(schema.get("properties", {})) == {one.encode_name for one in structs.fields(operation.body)}
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize("operation", with_body())
def test_fields_that_are_not_served_show_the_only_values_they_take(operation: Operation) -> None:
    fields = body_schema(operation).get("properties", {})
    marked = {name for name, one in fields.items() if one.get("description", "").startswith("Not served")}
    assert marked == {name for name in operation.neutral if name in fields}
    for name in marked:
        assert fields[name]["enum"] == [*operation.neutral[name], None]
    harmless = {name for name, one in fields.items() if "without an effect" in one.get("description", "")}
    assert harmless == operation.accepted & set(fields)


def test_statuses_are_ones_that_errors_have() -> None:
    statuses = {shape.status for code, shape in SHAPES.items() if code is not Code.CLIENT_GONE}
    for operation in OPERATIONS:
        assert set(operation.statuses) <= statuses, operation.path
        assert operation.is_public or {401, 403, 500, 503} <= set(operation.statuses), operation.path


def test_every_reference_leads_somewhere_and_patterns_are_portable() -> None:
    text = str(DOCUMENT)
    names = re.findall(r"#/components/schemas/([\w.]+)", text)
    assert names and set(names) <= set(DOCUMENT["components"]["schemas"])
    assert "\\Z" not in text
