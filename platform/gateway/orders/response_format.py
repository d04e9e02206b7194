"""`response_format`: from what a client sends to the constraint that an engine enforces.

A schema crosses as the very text it was sent as. `strict` makes no difference: every schema is enforced, and
one that can't be is refused by the engine, before anything is queued.
"""

from typing import Annotated

from msgspec import Meta, Raw, Struct

from inference_engine.contract.codes import Code
from inference_engine.contract.requests import Constraint, ConstraintKind
from tenants.errors import Denied

SCHEMA_PARAM = "response_format.json_schema.schema"


class TextFormat(Struct, forbid_unknown_fields=True, tag_field="type", tag="text"):
    pass


class JsonObjectFormat(Struct, forbid_unknown_fields=True, tag_field="type", tag="json_object"):
    pass


class NamedSchema(Struct, forbid_unknown_fields=True, kw_only=True):
    name: Annotated[str, Meta(max_length=64, pattern=r"^[a-zA-Z0-9_-]+\Z")]
    schema: Raw
    description: str | None = None
    strict: bool | None = None


class JsonSchemaFormat(Struct, forbid_unknown_fields=True, tag_field="type", tag="json_schema"):
    json_schema: NamedSchema


ResponseFormat = TextFormat | JsonObjectFormat | JsonSchemaFormat


def constraint_of(response_format: ResponseFormat | None) -> Constraint | None:
    """Raises Denied."""
    match response_format:
        case JsonObjectFormat():
            return Constraint(kind=ConstraintKind.JSON_OBJECT)
        case JsonSchemaFormat(json_schema):
            return constraint_of_schema(json_schema.schema, SCHEMA_PARAM)
        case _:
            return None


def constraint_of_schema(schema: Raw, param: str) -> Constraint:
    """`param` is where the schema stands. Raises Denied."""
    try:
        source = bytes(schema).decode()
    except UnicodeDecodeError:
        raise Denied(Code.INVALID_JSON, "The body is not valid UTF-8.", param=param) from None
    if not source.lstrip().startswith("{"):
        raise Denied(Code.INVALID_REQUEST, f"'{param}' must be an object: a JSON schema.", param=param)
    return Constraint(kind=ConstraintKind.JSON_SCHEMA, source=source)
