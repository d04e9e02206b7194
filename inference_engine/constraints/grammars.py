"""From a constraint to the grammar that llguidance reads."""

import json
from typing import TYPE_CHECKING

from llguidance import LLMatcher

from inference_engine.contract.requests import Constraint, ConstraintKind

from .errors import ConstraintError
from .lark_source import checked_lark
from .patterns import portable_pattern
from .schema_keywords import checked_schema
from .schema_source import check_length, parse_schema

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions

JSON_OPTIONS: "JsonCompileOptions" = {
    # One spelling for each character: "\u0061" would be the property "a", yet not held to the schema of "a".
    "json_allowed_escapes": 'nrbtf\\"',
    "json_allow_general_unicode_escapes": False,
    # A weak model must not be able to fill its whole output with white space.
    "whitespace_pattern": r"[\x20\x0A\x0D\x09]{1,40}",
    "coerce_one_of": False,
    "lenient": False,
}
ANY_OBJECT = {"type": "object"}


def grammar_of(constraint: Constraint) -> str:
    """Raises ConstraintError for what can be refused by looking; the rest shows when it is compiled."""
    match constraint.kind:
        case ConstraintKind.JSON_OBJECT:
            return _grammar_of_schema(ANY_OBJECT)
        case ConstraintKind.JSON_SCHEMA:
            return _grammar_of_schema(checked_schema(parse_schema(constraint.source)))
        case ConstraintKind.REGEX:
            check_length(constraint.source)
            return str(LLMatcher.grammar_from_regex(portable_pattern(constraint.source)))
        case ConstraintKind.GRAMMAR:
            check_length(constraint.source)
            return str(LLMatcher.grammar_from_lark(checked_lark(constraint.source)))


def _grammar_of_schema(schema: object) -> str:
    try:
        return str(LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=JSON_OPTIONS))
    except ValueError as error:
        raise ConstraintError(f"JSON schema: {str(error)[:300]}") from error
