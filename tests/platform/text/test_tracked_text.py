"""Ownership through string operations: the template's characters are capitals, the client's are small."""

import pytest

from text.tracked_text import TrackedText


def capitals_owned(text: str) -> TrackedText:
    parts = [TrackedText.owned(character) if character.isupper() else character for character in text]
    return TrackedText.concat(parts)


def owned_characters(text: str) -> str:
    spans = text.spans if isinstance(text, TrackedText) else ()
    return "".join(str.__getitem__(text, slice(start, end)) for start, end in spans)


def test_neighbouring_owned_pieces_become_one_span() -> None:
    assert TrackedText.concat([TrackedText.owned("<|"), TrackedText.owned("user"), "x"]).spans == ((0, 6),)


@pytest.mark.parametrize(
    ("operation", "text", "owned"),
    [
        (lambda: capitals_owned("AB") + "cd", "ABcd", "AB"),
        (lambda: "cd" + capitals_owned("AB"), "cdAB", "AB"),
        (lambda: capitals_owned("AbC") + capitals_owned("dE"), "AbCdE", "ACE"),
        (lambda: capitals_owned("Ab") * 2, "AbAb", "AA"),
        (lambda: 2 * capitals_owned("Ab"), "AbAb", "AA"),
        (lambda: capitals_owned("AbC")[0], "A", "A"),
        (lambda: capitals_owned("AbC")[-2], "b", ""),
        (lambda: capitals_owned("AbCd")[1:], "bCd", "C"),
        (lambda: capitals_owned("AbCd")[3:1], "", ""),
        (lambda: capitals_owned("AbCd")[::-1], "dCbA", ""),
        (lambda: capitals_owned("  aB ").strip(), "aB", "B"),
        (lambda: capitals_owned("xAbx").strip("x"), "Ab", "A"),
        (lambda: capitals_owned("\nAb").lstrip("\n"), "Ab", "A"),
        (lambda: capitals_owned("aB  ").rstrip(), "aB", "B"),
        (lambda: capitals_owned("PREab").removeprefix("PRE"), "ab", ""),
        (lambda: capitals_owned("abSUF").removesuffix("SUF"), "ab", ""),
        (lambda: capitals_owned("aXb").replace("a", "cc"), "ccXb", "X"),
        (lambda: capitals_owned("aXb").replace("X", TrackedText.owned("YZ")), "aYZb", "YZ"),
        (lambda: capitals_owned("aXbX").replace("X", "y", 1), "aybX", "X"),
        (lambda: capitals_owned("aX").replace("", "-"), "-a-X-", ""),
        (lambda: TrackedText.owned("S").join(["a", capitals_owned("B"), "c"]), "aSBSc", "SBS"),
        (lambda: capitals_owned("aB").upper(), "AB", "B"),
        (lambda: capitals_owned("aB").lower(), "ab", "b"),
        (lambda: capitals_owned("aß B").upper(), "ASS B", ""),
        (lambda: capitals_owned("aB").capitalize(), "Ab", "b"),
        (lambda: capitals_owned("aB").title(), "Ab", "b"),
        (lambda: str(capitals_owned("aB")), "aB", "B"),
        (lambda: f"-{capitals_owned('aB')}", "-aB", ""),
        (lambda: capitals_owned("aB%s") % "c", "aBc", ""),
        (lambda: capitals_owned("aB").center(4), " aB ", ""),
    ],
)
def test_operation_keeps_what_it_can_place(operation, text, owned) -> None:
    result = operation()
    assert result == text
    assert owned_characters(result) == owned


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (lambda: capitals_owned("abXbY").split("ab"), ["", "XbY"]),
        (lambda: capitals_owned("xABb").split("AB"), ["x", "b"]),
        (lambda: capitals_owned(" a  B c ").split(), ["a", "B", "c"]),
        (lambda: capitals_owned("a B c").split(None, 1), ["a", "B c"]),
        (lambda: capitals_owned("a-B-c").rsplit("-", 1), ["a-B", "c"]),
        (lambda: capitals_owned(" a B c").rsplit(None, 1), [" a B", "c"]),
        (lambda: capitals_owned("aB\r\nC\nd").splitlines(), ["aB", "C", "d"]),
        (lambda: capitals_owned("aB\nC").splitlines(True), ["aB\n", "C"]),
        (lambda: capitals_owned("aXbXc").partition("X"), ["a", "X", "bXc"]),
        (lambda: capitals_owned("aXbXc").rpartition("X"), ["aXb", "X", "c"]),
        (lambda: capitals_owned("abc").partition("X"), ["abc", "", ""]),
        (lambda: capitals_owned("abC").rpartition("X"), ["", "", "abC"]),
        (lambda: capitals_owned("aBc"), ["a", "B", "c"]),
    ],
)
def test_pieces_keep_their_owners(pieces, expected) -> None:
    found = list(pieces())
    assert found == expected
    for piece in found:
        assert owned_characters(piece) == "".join(filter(str.isupper, piece))


def test_concatenation_stops_at_its_limit() -> None:
    with pytest.raises(OverflowError):
        TrackedText.concat(("abc" for _ in iter(int, 1)), max_chars=100)


def test_adding_something_else_is_refused_as_for_any_string() -> None:
    with pytest.raises(TypeError):
        TrackedText.owned("a") + 1
    with pytest.raises(TypeError):
        None + TrackedText.owned("a")
