"""Random expressions and random ways through them."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_engine.constraints.building import build
from inference_engine.constraints.grammars import grammar_of
from inference_engine.constraints.matcher import Matcher
from inference_engine.constraints.vocabulary import Vocabulary, load_vocabulary
from inference_engine.contract.requests import Constraint, ConstraintKind
from random_model import RandomModel
from stand_ins.tiny_text import byte_level_tokenizer

ATOMS = st.sampled_from(
    [
        "a",
        "b",
        "hello",
        r"\d",
        r"\w",
        r"\s",
        r"\D",
        r"\W",
        r"\S",
        ".",
        "[a-f]",
        "[^a-f]",
        r"[^\w]",
        r"[\s\d]",
        r"\.",
        "é",
    ]
)


def wider(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    quantifier = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,}", "*?"])
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, quantifier).map(lambda pair: f"({pair[0]}){pair[1]}"),
    )


EXPRESSIONS = st.recursive(ATOMS, wider, max_leaves=8)


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return load_vocabulary(byte_level_tokenizer(), vocab_size=263, end_ids=[260, 262])


def matcher_of(expression: str, vocabulary: Vocabulary) -> Matcher:
    constraint = Constraint(kind=ConstraintKind.REGEX, source=expression)
    return Matcher(build(grammar_of(constraint, vocabulary), vocabulary.tokenizer), vocabulary)


@settings(deadline=None, max_examples=150)
@given(expression=EXPRESSIONS, seed=st.integers(0, 2**32))
def test_what_is_finished_matches_in_full(vocabulary: Vocabulary, expression: str, seed: int) -> None:
    matcher = matcher_of(expression, vocabulary)
    written = RandomModel(vocabulary, seed).write(matcher, 80)
    if written.has_ended:
        assert re.fullmatch(expression, written.text)


@settings(deadline=None, max_examples=100)
@given(expression=EXPRESSIONS, seed=st.integers(0, 2**32), moves=st.lists(st.integers(-5, 5), max_size=12))
def test_the_mask_is_a_function_of_the_output_ids(
    vocabulary: Vocabulary, expression: str, seed: int, moves: list[int]
) -> None:
    output_ids = RandomModel(vocabulary, seed).write(matcher_of(expression, vocabulary), 30).token_ids
    matcher = matcher_of(expression, vocabulary)
    position = 0
    for move in moves:
        position = min(max(position + move, 0), len(output_ids))
        matcher.follow(output_ids[:position])
    fresh = matcher_of(expression, vocabulary)
    fresh.follow(output_ids[:position])
    rows = np.zeros((2, vocabulary.num_words), np.int32)
    matcher.fill(rows[0])
    fresh.fill(rows[1])
    assert rows[0].tobytes() == rows[1].tobytes()
