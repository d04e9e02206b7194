"""What is guessed from a request's own tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_engine.scheduling.drafting.prompt_lookup import MAX_NGRAM, MIN_NGRAM, WINDOW, PromptLookup

TOKENS = st.lists(st.integers(0, 3), max_size=60)


def guess(ids: list[int], count: int) -> list[int]:
    lookup = PromptLookup()
    lookup.append(ids)
    return lookup.guess(count)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([1, 2, 3, 4, 5, 9, 1, 2, 3], [4, 5, 9]),
        ([1, 2, 7, 1, 2, 8, 5, 1, 2], [8, 5, 1]),
        ([9, 1, 2, 7, 8, 1, 2, 5, 9, 1, 2], [7, 8, 1]),
        ([1, 2, 3, 4], []),
        ([5, 5, 5], [5, 5, 5]),
        ([1, 2, 3, 1, 2, 3, 1], [2, 3, 1]),
        ([7], []),
        ([], []),
    ],
    ids=["copy", "the latest place", "the longest n-gram", "nothing", "loop of one", "loop", "one", "none"],
)
def test_what_followed_before_is_guessed(ids: list[int], expected: list[int]) -> None:
    assert guess(ids, 3) == expected


def test_ids_are_matched_whole_and_not_by_bytes_across_them() -> None:
    """The same bytes are there, a byte off."""
    assert guess([0x01000000, 0x02000000, 0x03000000, 5, 0x00010000, 0x00020000], 3) == []
    assert guess([0x00020100, 0x00020100, 9, 0x00020100, 0x00020100], 2) == [9, 0x00020100]


def test_only_so_far_back() -> None:
    far = [1, 2, 3, *range(10, 10 + WINDOW), 1, 2]
    assert guess(far, 1) == []
    assert guess(far[:10] + far[-2:], 1) == [3]


@given(TOKENS, st.integers(0, 9))
def test_it_is_what_a_plain_search_finds(ids: list[int], count: int) -> None:
    expected: list[int] = []
    for size in range(MAX_NGRAM, MIN_NGRAM - 1, -1):
        places = [
            at for at in range(len(ids) - size) if len(ids) > size and ids[at : at + size] == ids[-size:]
        ]
        if places:
            expected = list(ids)
            after = places[-1] + size
            for _ in range(count):
                expected.append(expected[after])
                after += 1
            expected = expected[len(ids) :]
            break
    assert guess(ids, count) == expected


@given(TOKENS, TOKENS)
def test_tokens_may_come_in_pieces(first: list[int], second: list[int]) -> None:
    lookup = PromptLookup()
    lookup.append(first)
    lookup.append(second)
    assert lookup.num_ids == len(first) + len(second)
    assert lookup.guess(4) == guess(first + second, 4)
