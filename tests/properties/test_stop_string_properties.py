"""The matcher against the definition of what it does, on text cut anywhere."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from text.stop_strings import StopMatcher

LETTERS = st.text(alphabet="ab😀", max_size=40)
STOPS = st.lists(st.text(alphabet="ab😀", min_size=1, max_size=5), min_size=1, max_size=4)
CUTS = st.lists(st.integers(0, 40), max_size=10)


def cut(text: str, places: list[int]) -> list[str]:
    edges = sorted({0, len(text), *(place for place in places if place < len(text))})
    return [text[start:end] for start, end in pairwise(edges)]


def first_match(text: str, stops: list[str]) -> tuple[int, int] | None:
    """(start, end) of the match that ends first, the longest of those."""
    for end in range(1, len(text) + 1):
        lengths = [len(stop) for stop in stops if text[:end].endswith(stop)]
        if lengths:
            return end - max(lengths), end
    return None


def held_length(text: str, stops: list[str]) -> int:
    beginnings = {stop[:length] for stop in stops for length in range(len(stop))}
    return max(len(beginning) for beginning in beginnings if text.endswith(beginning))


@given(LETTERS, STOPS, CUTS, st.booleans())
def test_outcome_depends_on_the_text_alone(
    text: str, stops: list[str], places: list[int], include: bool
) -> None:
    match = first_match(text, stops)
    expected = text if match is None else text[: match[1] if include else match[0]]
    matcher = StopMatcher(stops, include_stop=include)
    released = [matcher.push(piece) for piece in cut(text, places)]
    assert matcher.matched == (match is not None)
    assert "".join(released) + matcher.flush() == expected


@given(LETTERS, STOPS, CUTS)
def test_exactly_what_could_begin_a_stop_is_held_back(text: str, stops: list[str], places: list[int]) -> None:
    matcher, seen, released = StopMatcher(stops), "", ""
    for piece in cut(text, places):
        seen += piece
        released += matcher.push(piece)
        if matcher.matched:
            return
        assert released == seen[: len(seen) - held_length(seen, stops)]
