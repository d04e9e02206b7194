"""Which JSON schema keywords are served, and how: every other one is refused by its name.

llguidance ignores keywords it doesn't know and reads some more loosely than the standard, so a schema is
walked here first and written anew from what is left: dialects 6, 7, 2019-09 and 2020-12 (the default).
"""

from collections.abc import Callable
from typing import Any

from .errors import ConstraintError, unsupported
from .formats import EXACT_IN_LLGUIDANCE, PATTERNS
from .patterns import portable_pattern
from .schema_references import References, pointer_part
from .schema_values import MULTIPLE_LIMIT, check_literals, check_number, check_strings, check_type, size_of

MAX_SUBSCHEMAS = 2_000
MAX_PROPERTIES = 400
"""In one object: each optional one is four of the 2,000 items that a row of the parser may have."""
DEFAULT_DIALECT = "https://json-schema.org/draft/2020-12/schema"
TUPLE_DIALECTS = {
    "http://json-schema.org/draft-06/schema": "6",
    "http://json-schema.org/draft-07/schema": "7",
    "https://json-schema.org/draft/2019-09/schema": "2019-09",
}
"""Where `items` may be an array; afterwards that is `prefixItems`."""

ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly"}
    | {"$comment", "discriminator"}
)
"""They never change what is valid. `example` and `discriminator` come from OpenAPI."""
IDENTIFIERS = frozenset({"$schema", "$id", "$anchor"})
SIZES = frozenset(["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"])
BOUNDS = frozenset(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"])
LITERALS = frozenset({"const", "enum"})
SCHEMA_LISTS = frozenset(["anyOf", "oneOf", "allOf", "prefixItems"])
SCHEMA_MAPS = frozenset(["properties", "patternProperties", "$defs", "definitions"])
SCHEMAS = frozenset(["additionalProperties", "items", "additionalItems"])
OTHERS = frozenset(["type", "required", "pattern", "format", "multipleOf", "$ref"])
SUPPORTED = IDENTIFIERS | SIZES | BOUNDS | LITERALS | SCHEMA_LISTS | SCHEMA_MAPS | SCHEMAS | OTHERS


def checked_schema(schema: Any) -> Any:
    """The schema as llguidance is to read it. Raises ConstraintError."""
    walk = _Walk(_dialect_has_tuples(schema))
    written = walk.schema(schema, "")
    walk.references.check()
    if written is False:
        raise ConstraintError("JSON schema: nothing is valid under 'false'")
    return {} if written is True else written


def _dialect_has_tuples(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    dialect = schema.get("$schema", DEFAULT_DIALECT)
    name = dialect.removesuffix("#") if isinstance(dialect, str) else ""
    if name != DEFAULT_DIALECT and name not in TUPLE_DIALECTS:
        raise unsupported("$schema", "", f"{str(dialect)[:80]!r} is not a dialect served here")
    return name in TUPLE_DIALECTS


class _Walk:
    def __init__(self, has_tuples: bool) -> None:
        self._has_tuples = has_tuples
        self._num_subschemas = 0
        self.references = References()

    def schema(self, schema: Any, place: str) -> Any:
        self._num_subschemas += 1
        if self._num_subschemas > MAX_SUBSCHEMAS:
            raise ConstraintError(f"the JSON schema has more than {MAX_SUBSCHEMAS} subschemas")
        self.references.visit(place)
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise ConstraintError(f"JSON schema: a schema is an object or a boolean (at {place or '#'})")
        written = {}
        for keyword, value in schema.items():
            if keyword not in ANNOTATIONS:
                written[keyword] = self._keyword(keyword, value, place)
        _check_min_properties(written, place)
        return _with_format(written, place)

    def _keyword(self, keyword: str, value: Any, place: str) -> Any:
        if keyword not in SUPPORTED:
            raise unsupported(keyword, place)
        if keyword == ("prefixItems" if self._has_tuples else "additionalItems"):
            raise unsupported(keyword, place, "does not exist in the schema's dialect")
        return self._handler(keyword)(keyword, value, place)

    def _handler(self, keyword: str) -> "Callable[[str, Any, str], Any]":
        if keyword == "items":
            return self._items
        groups = (
            (SCHEMAS, self._subschema),
            (SCHEMA_LISTS, self._schema_list),
            (SCHEMA_MAPS, self._schema_map),
            (IDENTIFIERS, self._identifier),
            (SIZES, size_of),
            (BOUNDS, check_number),
            (LITERALS, check_literals),
            (frozenset({"$ref"}), self._reference),
            (frozenset({"multipleOf"}), _multiple),
            (frozenset({"pattern"}), _pattern),
            (frozenset({"type"}), check_type),
            (frozenset({"required"}), check_strings),
            (frozenset({"format"}), lambda keyword, value, place: value),
        )
        return next(handler for keywords, handler in groups if keyword in keywords)

    def _subschema(self, keyword: str, value: Any, place: str) -> Any:
        return self.schema(value, f"{place}/{keyword}")

    def _items(self, keyword: str, value: Any, place: str) -> Any:
        if isinstance(value, list) and self._has_tuples:
            return self._schema_list(keyword, value, place)
        return self._subschema(keyword, value, place)

    def _schema_list(self, keyword: str, value: Any, place: str) -> Any:
        if not isinstance(value, list) or not value:
            raise unsupported(keyword, place, "must be a list of schemas that is not empty")
        return [self.schema(item, f"{place}/{keyword}/{index}") for index, item in enumerate(value)]

    def _schema_map(self, keyword: str, value: Any, place: str) -> Any:
        if not isinstance(value, dict):
            raise unsupported(keyword, place, "must be an object")
        if keyword == "properties" and len(value) > MAX_PROPERTIES:
            raise unsupported(keyword, place, f"has more than {MAX_PROPERTIES} names")
        written = {}
        for name, item in value.items():
            key = portable_pattern(name, exact=True) if keyword == "patternProperties" else name
            if key in written:
                raise unsupported(keyword, place, f"holds one pattern in two spellings: {name[:80]!r}")
            written[key] = self.schema(item, f"{place}/{keyword}/{pointer_part(name)}")
        return written

    def _identifier(self, keyword: str, value: Any, place: str) -> Any:
        if not isinstance(value, str):
            raise unsupported(keyword, place, "must be a string")
        if keyword == "$anchor":
            self.references.add_anchor(value)
        elif place:
            raise unsupported(keyword, place, "is supported at the root only")
        return value

    def _reference(self, keyword: str, value: Any, place: str) -> Any:
        return self.references.refer(value, place)


def _multiple(keyword: str, value: Any, place: str) -> Any:
    """Fractions are refused: whether 4.35 is a multiple of 0.01 depends on who computes it."""
    number = size_of(keyword, value, place)
    if not 0 < number <= MULTIPLE_LIMIT:
        raise unsupported(keyword, place, f"is supported for whole numbers from 1 to {MULTIPLE_LIMIT} only")
    return number


def _pattern(keyword: str, value: Any, place: str) -> Any:
    if not isinstance(value, str):
        raise unsupported(keyword, place, "must be a string")
    return portable_pattern(value)


def _with_format(written: dict[str, Any], place: str) -> dict[str, Any]:
    """The schema with its format put as a pattern where we have one, beside any pattern of its own."""
    name = written.get("format")
    if name is None or name in EXACT_IN_LLGUIDANCE:
        return written
    if not isinstance(name, str) or name not in PATTERNS:
        raise unsupported("format", place, f"{str(name)[:80]!r} is not supported")
    others = {keyword: value for keyword, value in written.items() if keyword != "format"}
    pattern = {"pattern": portable_pattern(PATTERNS[name])}
    if "pattern" not in others:
        return {**others, **pattern}
    return {**others, "allOf": [*others.get("allOf", []), pattern]}


def _check_min_properties(schema: dict[str, Any], place: str) -> None:
    """A name that isn't listed may come twice, which a parser reads as one: so only listed ones count."""
    least = schema.get("minProperties", 0)
    if least > 1 and least > len(set(schema.get("required", ()))):
        raise unsupported("minProperties", place, "above 1 needs as many names in 'required'")
