"""Through any operations, each character keeps its owner.

Here a character tells whose it is: the template's are capitals and spaces, the client's small ones and tabs.
"""

from collections.abc import Callable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from text.tracked_text import TrackedText

OWNED = "AB "


def tracked(text: str) -> TrackedText:
    return TrackedText.concat([TrackedText.owned(each) if each in OWNED else each for each in text])


TEXT = st.text(alphabet="AB ab\t", max_size=20)
SEPARATOR = st.one_of(st.none(), st.text(alphabet="Aa ", min_size=1, max_size=2))
Operation = Callable[[str], object]


def operations() -> st.SearchStrategy[Operation]:
    other, places = TEXT.map(tracked), st.integers(-25, 25)
    return st.one_of(
        SEPARATOR.map(lambda chars: lambda text: text.strip(chars)),
        st.tuples(SEPARATOR, st.integers(-1, 3)).map(lambda how: lambda text: text.split(*how)),
        st.tuples(SEPARATOR, st.integers(-1, 3)).map(lambda how: lambda text: text.rsplit(*how)),
        st.tuples(places, places).map(lambda ends: lambda text: text[ends[0] : ends[1]]),
        other.map(lambda more: lambda text: text + more),
        other.map(lambda more: lambda text: str.__str__(more).lower().replace(" ", "") + text),
        st.tuples(SEPARATOR.filter(bool), other).map(lambda how: lambda text: text.replace(*how)),
        SEPARATOR.filter(bool).map(lambda separator: lambda text: list(text.partition(separator))),
        SEPARATOR.filter(bool).map(lambda separator: lambda text: list(text.rpartition(separator))),
        other.map(lambda more: lambda text: more.join([text, "ab", text])),
        st.integers(0, 3).map(lambda times: lambda text: text * times),
        st.just(list),
    )


def check(text: str) -> None:
    spans = text.spans if isinstance(text, TrackedText) else ()
    owned = {index for start, end in spans for index in range(start, end)}
    assert owned == {index for index, each in enumerate(str.__str__(text)) if each in OWNED}
    assert all(left[1] < right[0] for left, right in pairwise(spans))


@given(TEXT, st.lists(operations(), max_size=4))
def test_every_character_keeps_its_owner(text: str, steps: list[Operation]) -> None:
    value: object = tracked(text)
    for step in steps:
        if isinstance(value, list):
            value = value[-1] if value else tracked("")
        assert isinstance(value, str)
        plain, value = step(str.__str__(value)), step(value)
        assert value == plain
        for piece in value if isinstance(value, list) else [value]:
            check(piece)
