"""From a constraint to the grammar that llguidance reads."""

import json

from llguidance import LLMatcher

from inference_engine.contract.requests import Constraint, ConstraintKind

from .errors import ConstraintError
from .json_options import JSON_OPTIONS
from .lark_source import checked_lark
from .patterns import portable_pattern
from .schema_keywords import checked_schema
from .schema_source import check_length, parse_schema
from .tool_calls import grammar_of_tool_calls
from .vocabulary import Vocabulary

ANY_OBJECT = {"type": "object"}


def grammar_of(constraint: Constraint, vocabulary: Vocabulary) -> str:
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
        case ConstraintKind.TOOL_CALLS:
            check_length(constraint.source)
            return grammar_of_tool_calls(constraint.source, vocabulary)


def _grammar_of_schema(schema: object) -> str:
    try:
        return str(LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=JSON_OPTIONS))
    except ValueError as error:
        raise ConstraintError(f"JSON schema: {str(error)[:300]}") from error
