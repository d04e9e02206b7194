"""A matcher follows its request: forward, back, and again from the output ids alone."""

from collections.abc import Callable

import numpy as np
import pytest

from inference_engine.constraints.errors import ConstraintError
from inference_engine.constraints.masks import allowed_tokens
from inference_engine.constraints.matcher import Matcher
from inference_engine.constraints.vocabulary import Vocabulary
from inference_engine.contract.requests import ConstraintKind
from random_model import RandomModel

JSON_OBJECT, REGEX = ConstraintKind.JSON_OBJECT, ConstraintKind.REGEX
MakeMatcher = Callable[..., Matcher]


def mask_of(matcher: Matcher) -> bytes:
    row = np.zeros(matcher.vocabulary.num_words, np.int32)
    matcher.fill(row)
    return row.tobytes()


def allowed(matcher: Matcher) -> set[int]:
    row = np.frombuffer(mask_of(matcher), np.int32)[None]
    return set(allowed_tokens(row, matcher.vocabulary.size)[0].nonzero()[0].tolist())


def ids(matcher: Matcher, text: str) -> list[int]:
    return matcher.vocabulary.tokenizer.tokenize_str(text)


def test_every_step_back_restores_the_mask(make_matcher: MakeMatcher, vocabulary: Vocabulary) -> None:
    matcher = make_matcher(JSON_OBJECT)
    output_ids = RandomModel(vocabulary, 3).write(make_matcher(JSON_OBJECT), 60).token_ids
    masks = [mask_of(matcher)]
    for token_id in output_ids:
        matcher.advance(token_id)
        masks.append(mask_of(matcher))
    for back in (1, 2, 5, len(output_ids)):
        matcher.roll_back(back)
        assert mask_of(matcher) == masks[len(output_ids) - back]
        matcher.follow(output_ids)
        assert mask_of(matcher) == masks[-1]


def test_a_matcher_built_again_from_the_output_ids_has_the_same_mask(
    make_matcher: MakeMatcher, vocabulary: Vocabulary
) -> None:
    for seed in range(20):
        original = make_matcher(JSON_OBJECT)
        output_ids = RandomModel(vocabulary, seed).write(original, 40).token_ids
        replayed = make_matcher(JSON_OBJECT)
        replayed.follow(output_ids)
        assert mask_of(replayed) == mask_of(original)


def test_follow_also_goes_back(make_matcher: MakeMatcher) -> None:
    matcher = make_matcher(JSON_OBJECT)
    output_ids = ids(matcher, '{"key": [1, 2')
    matcher.follow(output_ids)
    matcher.follow(output_ids[:3])
    shorter = make_matcher(JSON_OBJECT)
    shorter.follow(output_ids[:3])
    assert matcher.num_consumed == 3
    assert mask_of(matcher) == mask_of(shorter)


def test_a_complete_output_allows_the_end_ids_and_nothing_else(make_matcher: MakeMatcher) -> None:
    matcher = make_matcher(REGEX, "ab?")
    assert not matcher.is_accepting
    assert not allowed(matcher) & matcher.vocabulary.end_ids
    matcher.follow(ids(matcher, "a"))
    assert matcher.is_accepting and not matcher.is_complete
    assert allowed(matcher) == matcher.vocabulary.end_ids | set(ids(matcher, "b"))
    matcher.advance(*ids(matcher, "b"))
    assert matcher.is_complete
    assert allowed(matcher) == matcher.vocabulary.end_ids
    matcher.roll_back(1)
    assert not matcher.is_complete


def test_control_tokens_and_padding_rows_are_never_allowed(make_matcher: MakeMatcher) -> None:
    matcher = make_matcher(JSON_OBJECT)
    matcher.follow(ids(matcher, '{"a": "'))
    size = matcher.vocabulary.size
    special = {i for i in range(size) if matcher.vocabulary.tokenizer.is_special_token(i)}
    padding = set(range(size - 5, size))
    assert len(special) >= 3
    assert not allowed(matcher) & (special | padding)
    assert len(allowed(matcher)) > 90


def test_a_token_that_does_not_match_is_refused_and_changes_nothing(make_matcher: MakeMatcher) -> None:
    matcher = make_matcher(REGEX, "ab")
    before = mask_of(matcher)
    for token_id in (*ids(matcher, "b"), *matcher.vocabulary.end_ids, -1, matcher.vocabulary.size):
        with pytest.raises(ConstraintError) as refusal:
            matcher.advance(token_id)
        assert refusal.value.param == "output_ids"
    assert mask_of(matcher) == before
    assert matcher.num_consumed == 0


def test_drafts_get_a_mask_for_every_position_the_grammar_lets_them_reach(make_matcher: MakeMatcher) -> None:
    matcher = make_matcher(REGEX, "abc*")
    drafts = ids(matcher, "a") + ids(matcher, "b") + ids(matcher, "x") + ids(matcher, "c")
    rows = np.zeros((len(drafts) + 1, matcher.vocabulary.num_words), np.int32)
    assert matcher.fill_drafts(drafts, rows) == 2
    assert matcher.num_consumed == 0
    for position in range(3):
        matcher.follow(drafts[:position])
        assert rows[position].tobytes() == mask_of(matcher)
    assert not rows[3:].any()


def test_white_space_has_an_end(make_matcher: MakeMatcher) -> None:
    matcher = make_matcher(JSON_OBJECT)
    matcher.follow(ids(matcher, "{" + " " * 40))
    assert not set(ids(matcher, " ")) & allowed(matcher)
