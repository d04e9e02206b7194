"""The OpenAPI document, made from the very types that bodies are decoded with."""

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import structs

from .operation import Operation

Schema = dict[str, Any]
TITLE = "Octavo"
KEY = "key"
EVENT = {
    "type": "object",
    "description": "Server-sent events. The data of each is a JSON object, or [DONE].",
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
    "required": ["data"],
}
_REFERENCE = "#/components/schemas/{name}"


def document_of(operations: Iterable[Operation], version: str) -> Schema:
    """OpenAPI 3.1."""
    listed = list(operations)
    kinds = [kind for operation in listed for kind in operation.types]
    shown, schemas = msgspec.json.schema_components(kinds, ref_template=_REFERENCE)
    references = dict(zip(map(id, kinds), shown, strict=True))
    for operation in listed:
        _mark_fields(operation, references, schemas)
    paths: dict[str, Schema] = {}
    for operation in listed:
        described = _described(operation, references)
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    document = {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": version},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {KEY: {"type": "http", "scheme": "bearer"}},
        },
    }
    return dict(_portable(document))


def _described(operation: Operation, references: Mapping[int, Schema]) -> Schema:
    described: Schema = {
        "operationId": _name_of(operation),
        "summary": operation.summary,
        "security": [] if operation.is_public else [{KEY: []}],
        "responses": _answers(operation, references),
    }
    if parameters := [*_path_parameters(operation.path), *_query_parameters(operation.query)]:
        described["parameters"] = parameters
    if operation.body is not None:
        content = {"application/json": {"schema": references[id(operation.body)]}}
        described["requestBody"] = {"required": operation.needs_body, "content": content}
    return described


def _name_of(operation: Operation) -> str:
    return re.sub(r"\W+", "_", f"{operation.method.lower()}{operation.path}").strip("_")


def _answers(operation: Operation, references: Mapping[int, Schema]) -> Schema:
    schema = {"type": "object"} if operation.answer is None else references[id(operation.answer)]
    if operation.media_type != "application/json":
        schema = {"type": "string"}
    content: Schema = {operation.media_type: {"schema": schema}}
    if operation.has_events:
        content["text/event-stream"] = {"schema": EVENT}
    answers: Schema = {"200": {"description": "OK", "content": content}}
    for status in operation.statuses:
        answers[str(status)] = {
            "description": _phrase(status),
            "content": {"application/json": {"schema": references[id(operation.error)]}},
        }
    return answers


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase


def _path_parameters(path: str) -> list[Schema]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"\{(\w+)\}", path)
    ]


def _query_parameters(query: Any) -> list[Schema]:
    if query is None:
        return []
    return [
        {"name": one.encode_name, "in": "query", "required": False, "schema": msgspec.json.schema(one.type)}
        for one in structs.fields(query)
    ]


def _mark_fields(
    operation: Operation, references: Mapping[int, Schema], schemas: Mapping[str, Schema]
) -> None:
    """What is known but not served, and what changes nothing, says so."""
    if operation.body is None:
        return
    name = references[id(operation.body)]["$ref"].rpartition("/")[2]
    fields = schemas[name]["properties"]
    for name, values in operation.neutral.items():
        if name in fields:
            fields[name] = {"enum": [*values, None], "description": "Not served: one of these values only."}
    for name in operation.accepted:
        if name in fields:
            fields[name]["description"] = "Accepted without an effect on the answer."


def _portable(value: Any) -> Any:
    """Python's end of a text, as other readers of patterns spell it."""
    if isinstance(value, dict):
        changed = {name: _portable(one) for name, one in value.items()}
        if isinstance(changed.get("pattern"), str):
            changed["pattern"] = changed["pattern"].replace("\\Z", "$")
        return changed
    return [_portable(one) for one in value] if isinstance(value, list) else value
