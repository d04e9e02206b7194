"""`text`: what the output must look like."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct, json

from gateway.orders.response_format import constraint_of_schema
from inference_engine.contract.requests import Constraint, ConstraintKind

SCHEMA_PARAM = "text.format.schema"


class PlainText(Struct, forbid_unknown_fields=True, tag_field="type", tag="text"):
    pass


class JsonObject(Struct, forbid_unknown_fields=True, tag_field="type", tag="json_object"):
    pass


class JsonSchema(Struct, forbid_unknown_fields=True, tag_field="type", tag="json_schema", kw_only=True):
    name: Annotated[str, Meta(max_length=64, pattern=r"^[a-zA-Z0-9_-]+\Z")]
    schema: Raw
    description: str | None = None
    strict: bool | None = None


class TextSettings(Struct, forbid_unknown_fields=True):
    format: PlainText | JsonObject | JsonSchema | None = None
    verbosity: Literal["medium"] | None = None


def constraint_of_text(settings: TextSettings | None) -> Constraint | None:
    """Raises Denied."""
    match settings and settings.format:
        case JsonObject():
            return Constraint(kind=ConstraintKind.JSON_OBJECT)
        case JsonSchema(schema=schema):
            return constraint_of_schema(schema, SCHEMA_PARAM)
        case _:
            return None


def shown_text(settings: TextSettings | None) -> dict[str, Any]:
    """As the response object repeats it."""
    kept = settings.format if settings and settings.format else PlainText()
    shown = json.decode(json.encode(kept))
    return {"format": shown, "verbosity": "medium"}
