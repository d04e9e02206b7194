"""Expressions are read as all dialects read them, or not at all."""

import re

import pytest

from inference_engine.constraints.errors import ConstraintError
from inference_engine.constraints.patterns import portable_pattern
from inference_engine.contract.requests import ConstraintKind

SAMPLES = [
    "a",
    "b",
    "[b]",
    "A",
    "ab",
    "a-b",
    "3",
    "\u0663",
    "\u00e9",
    "\u00bd",
    " ",
    "\t",
    "\n",
    "\r",
    "\x1c",
]
SAMPLES += [
    "\u00a0",
    "\ufeff",
    "\u2028",
    "_",
    "-",
    "]",
    "^",
    "{",
    "}",
    "&",
    "aa",
    "aaa",
    "\\",
    "/",
    "x",
    ".",
    "",
]


SHORTHANDS = [r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", "."]
CLASSES = ["[a-c]", "[^a-c]", "[[a]", "[a&&b]", r"[\d-]", r"[^\d]", r"[^\D]", r"[^\w\s]", r"[^\W]", r"[^\S]"]
CLASSES += [r"[\]\\]", r"[a\-c]", "[-a]", "[a-]", r"[\s-]"]
OTHERS = ["a{2}", "a{1,}", "a{0,2}", "a*?", "(?:a|b)+", "^a$", "a|b", r"\x41", r"\u0041", r"\-", r"\/", r"\{"]
OTHERS += ["}", "]", r"\."]


@pytest.mark.filterwarnings("ignore:Possible:FutureWarning")
@pytest.mark.parametrize("pattern", SHORTHANDS + CLASSES + OTHERS)
def test_what_is_generated_matches_in_python_too(pattern: str, make_matcher, vocabulary) -> None:
    matcher = make_matcher(ConstraintKind.REGEX, pattern)
    accepted = [text for text in SAMPLES if accepts_text(matcher, vocabulary, text)]
    assert [text for text in accepted if re.fullmatch(pattern, text) is None] == []
    ascii_matches = [text for text in SAMPLES if text.isascii() and re.fullmatch(pattern, text)]
    control = {"\r", "\x1c", "\n"}
    assert set(ascii_matches) - set(accepted) <= control
    assert accepted or not ascii_matches


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        ("[invalid(", "ends too early"),
        ("(?i)a", "(?:"),
        ("a(?=b)", "(?:"),
        ("(?P<n>a)", "(?:"),
        (r"\p{Letter}", r"\p"),
        (r"\bfoo", r"\b"),
        (r"\Aa", r"\A"),
        (r"(a)\1", r"\1"),
        (r"\<a", r"\<"),
        ("a++", "nothing to repeat"),
        ("a{,3}", "literal '{'"),
        ("*a", "nothing to repeat"),
        ("[]", "empty class"),
        ("[z-a]", "z-a"),
        (r"[a-\d]", r"\d"),
        (r"\ud83d", r"\u"),
        ("\\", "ends too early"),
    ],
)
def test_what_only_one_dialect_knows_is_refused_by_name(pattern: str, named: str) -> None:
    with pytest.raises(ConstraintError, match=re.escape(named)):
        portable_pattern(pattern)


def test_names_of_properties_follow_ecma_exactly() -> None:
    assert portable_pattern(r"\D", exact=True) == "[[^0-9]]"
    assert portable_pattern(r"\D") == r"[[^\p{Nd}]]"


def accepts_text(matcher, vocabulary, text: str) -> bool:
    from schema_suite import accepts

    return accepts(matcher, vocabulary.tokenizer.tokenize_str(text))
