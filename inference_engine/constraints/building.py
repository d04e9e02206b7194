"""From a grammar's text to its compiled form, in this process, for as long as it takes."""

from llguidance import LLMatcher, LLTokenizer

from .errors import ConstraintError
from .limits import PARSER_LIMITS

_NAMES = (
    ("oneOf constraints", "oneOf", "is supported only where no value can match two of its options"),
    ("patternProperty regexes", "patternProperties", "is supported only where no name matches two of them"),
    ("Failed to generate regex for float", "minimum' or 'maximum", "is beyond the numbers supported"),
    ("min/maxProperties", "minProperties' or 'maxProperties", "needs every listed property to be required"),
)
"""llguidance's messages about what it can't do, by their start, and the keyword each is about."""


def build(text: str, tokenizer: LLTokenizer) -> LLMatcher:
    """Releases the GIL. Raises ConstraintError, also where no output at all can match."""
    compiled = LLMatcher(tokenizer, text, log_level=0, limits=PARSER_LIMITS)
    _check(compiled)
    probe = compiled.deep_copy()
    is_possible = any(probe.compute_bitmask())
    _check(probe)
    if not is_possible:
        raise _refusal("no output can match it")
    return compiled


def first_line(error: str) -> str:
    """llguidance puts its parser's whole state below the message."""
    return " ".join(error.partition("<state>")[0].split())[:300] or "the grammar failed"


def _check(compiled: LLMatcher) -> None:
    if compiled.is_error():
        reason = first_line(compiled.get_error())
        raise _refusal("no output can match it" if reason.startswith("NoExtension") else reason)


def _refusal(reason: str) -> ConstraintError:
    for start, keyword, why in _NAMES:
        if reason.startswith(start):
            return ConstraintError(f"JSON schema: '{keyword}' {why}")
    return ConstraintError(f"the constraint can't be compiled: {reason}")
