import pytest

from text.errors import PromptError
from text.stop_strings import MAX_STOP_CHARS, StopMatcher, checked_stops


def released(stops: list[str], pieces: list[str], **options: bool) -> list[str]:
    matcher = StopMatcher(stops, **options)
    return [*map(matcher.push, pieces), matcher.flush()]


def test_text_before_the_stop_is_all_that_comes_out() -> None:
    matcher = StopMatcher(["DEFGHIJ"])
    assert [matcher.push(letter) for letter in "ABCDEFGHI"] == ["A", "B", "C", "", "", "", "", "", ""]
    assert (matcher.push("J"), matcher.matched, matcher.flush()) == ("", True, "")


def test_beginning_of_a_stop_that_never_comes_is_given_back() -> None:
    assert released(["DEFGHIJ"], ["ABCDEF", "G", "!"]) == ["ABC", "", "DEFG!", ""]
    assert released(["DEFGHIJ"], ["ABCDEF"]) == ["ABC", "DEF"]


def test_only_what_can_still_begin_a_stop_is_held() -> None:
    assert released(["aab"], ["a", "a", "a", "a", "b"]) == ["", "", "a", "a", "", ""]
    assert released(["abac", "bad"], ["aba", "d"]) == ["", "a", ""]


def test_stop_may_be_shown_and_nothing_after_it() -> None:
    assert released(["\n"], ["one\ntwo"]) == ["one", ""]
    assert released(["\n"], ["one\ntwo"], include_stop=True) == ["one\n", ""]
    assert released(["xy"], ["ax", "yb"], include_stop=True) == ["a", "xy", ""]


def test_match_that_completes_first_wins_and_the_longest_of_those() -> None:
    assert released(["abcd", "bc"], ["abcd"]) == ["a", ""]
    assert released(["bc", "abc", "c"], ["xabc"]) == ["x", ""]
    assert released(["bc", "abc", "c"], list("xabc")) == ["x", "", "", "", ""]


def test_nothing_comes_out_after_the_match() -> None:
    assert released(["!"], ["a!", "b", "!"]) == ["a", "", "", ""]


def test_stop_of_several_bytes_a_character() -> None:
    assert released(["👨‍👩‍👧"], ["a👨", "\u200d👩", "\u200d👧", "b"]) == ["a", "", "", "", ""]
    assert released(["👨‍👩‍👧"], ["a👨", "\u200d👩", " b"]) == ["a", "", "👨‍👩 b", ""]


@pytest.mark.parametrize(
    ("stop", "expected"), [(None, ()), ("x", ("x",)), ([], ()), (["a", "b", "c", "d"], ("a", "b", "c", "d"))]
)
def test_accepted_stops(stop: object, expected: tuple[str, ...]) -> None:
    assert checked_stops(stop) == expected


@pytest.mark.parametrize(
    "stop", ["", [""], ["a"] * 5, [1], 7, {"a": 1}, [None], ["x" * (MAX_STOP_CHARS + 1)], [["a"]]]
)
def test_refused_stops(stop: object) -> None:
    with pytest.raises(PromptError) as caught:
        checked_stops(stop)
    assert caught.value.param == "stop"
