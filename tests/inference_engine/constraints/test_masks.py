"""The masks of a step: each row as if alone."""

from collections.abc import Callable

import numpy as np
import pytest

from inference_engine.constraints.building import build
from inference_engine.constraints.errors import ConstraintError
from inference_engine.constraints.masks import MaskFiller, allowed_tokens
from inference_engine.constraints.matcher import Matcher
from inference_engine.constraints.vocabulary import Vocabulary
from inference_engine.contract.codes import Code
from inference_engine.contract.requests import ConstraintKind

MakeMatcher = Callable[..., Matcher]
SOURCES = ["a+", "[0-9]{3}", "x|yz", "hello", ".*"]


@pytest.mark.parametrize("num_threads", [1, 2, 8])
@pytest.mark.parametrize("num_rows", [0, 1, 5])
def test_rows_are_filled_as_if_alone(
    num_threads: int, num_rows: int, make_matcher: MakeMatcher, vocabulary: Vocabulary
) -> None:
    filler = MaskFiller(vocabulary, max_rows=5, num_threads=num_threads)
    matchers = [make_matcher(ConstraintKind.REGEX, source) for source in SOURCES[:num_rows]]
    for _ in range(3):  # the buffer is used again
        step = filler.start([(matcher, ()) for matcher in matchers]).result()
        assert step.failures == {}
        for [row], matcher in zip(step.masks, matchers, strict=True):
            alone = np.zeros(vocabulary.num_words, np.int32)
            matcher.fill(alone)
            assert row.tobytes() == alone.tobytes()
    filler.close()


def test_a_matcher_that_fails_fails_alone(make_matcher: MakeMatcher, vocabulary: Vocabulary) -> None:
    """More alternatives at once than the parser has items for."""
    rules = "\n".join(f'r{i}: "a" r{i} "{i}" | "b"' for i in range(1500))
    source = f"start: {' | '.join(f'r{i}' for i in range(1500))}\n{rules}"
    broken = make_matcher(ConstraintKind.GRAMMAR, source)
    fine = make_matcher(ConstraintKind.REGEX, "a+")
    filler = MaskFiller(vocabulary, max_rows=3)
    with pytest.raises(ConstraintError) as error:
        for _ in range(5):
            broken.advance(*vocabulary.tokenizer.tokenize_str("a"))
            broken.fill(np.zeros(vocabulary.num_words, np.int32))
    assert error.value.code is Code.UNSUPPORTED_FEATURE
    step = filler.start([(fine, ()), (broken, ()), (fine, ())]).result()
    assert set(step.failures) == {1}
    assert step.failures[1].code is Code.UNSUPPORTED_FEATURE
    assert step.masks[0].any() and step.masks[2].any()
    filler.close()


def test_more_rows_than_the_buffer_has_is_our_own_fault(
    make_matcher: MakeMatcher, vocabulary: Vocabulary
) -> None:
    filler = MaskFiller(vocabulary, max_rows=1)
    with pytest.raises(AssertionError):
        filler.start([(make_matcher(ConstraintKind.REGEX, "a"), ())] * 2)
    filler.close()


def test_drafts_get_rows_of_their_own_as_far_as_they_are_allowed(
    make_matcher: MakeMatcher, vocabulary: Vocabulary
) -> None:
    filler = MaskFiller(vocabulary, max_rows=9)
    words, digits = (make_matcher(ConstraintKind.REGEX, source) for source in ("[a-z]+!", "[0-9]{3}"))
    step = filler.start([(words, b"abA"), (digits, ()), (digits, b"12")]).result()
    assert [len(masks) for masks in step.masks] == [3, 1, 3] and step.failures == {}
    words.follow(b"ab")
    alone = np.zeros(vocabulary.num_words, np.int32)
    words.fill(alone)
    assert step.masks[0][2].tobytes() == alone.tobytes()
    assert words.num_consumed == 2 and digits.num_consumed == 0
    filler.close()


def test_bits_become_one_flag_a_token_in_order() -> None:
    masks = np.zeros((2, 3), np.int32)
    masks[0, 0], masks[0, 1], masks[1, 2] = 1, 1 << 5, -(2**31)
    flags = allowed_tokens(masks, 96)
    assert flags.dtype == np.bool_ and flags.shape == (2, 96)
    assert [row.nonzero()[0].tolist() for row in flags] == [[0, 37], [95]]
    assert allowed_tokens(masks, 70).shape == (2, 70)


def test_build_refuses_what_nothing_can_match(vocabulary: Vocabulary) -> None:
    with pytest.raises(ConstraintError):
        build("start: start", vocabulary.tokenizer)
