"""Token ids in, text out, until a stop string ends it. The ids 0 to 255 of this vocabulary are the bytes."""

import json

import pytest
from tokenizers import Tokenizer

from stand_ins.tiny_text import byte_level_tokenizer
from text.decoding import Vocabulary
from text.stream_decoder import StreamDecoder, TextPiece
from text.token_bytes import token_table

HELLO = 259


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    raw = byte_level_tokenizer()
    return Vocabulary(token_table(json.loads(raw), Tokenizer.from_buffer(raw), 0), [260, 261, 262])


def test_tokens_become_text(vocabulary: Vocabulary) -> None:
    decoder = StreamDecoder(vocabulary)
    assert decoder.push([HELLO, *b" 1"]) == TextPiece("hello 1", 3, False)
    assert decoder.push([]) == TextPiece("", 0, False)
    assert decoder.finish() == TextPiece("", 0, False)


def test_stop_across_tokens_counts_the_token_that_completes_it(vocabulary: Vocabulary) -> None:
    decoder = StreamDecoder(vocabulary, ["lo!"])
    assert decoder.push([HELLO]) == TextPiece("hel", 1, False)
    assert decoder.push([*b"!abc"]) == TextPiece("", 1, True)
    assert decoder.push([*b"more"]) == TextPiece("", 0, True)
    assert decoder.finish() == TextPiece("", 0, True)
    assert decoder.num_tokens == 2


def test_stop_inside_a_token_cuts_it(vocabulary: Vocabulary) -> None:
    assert StreamDecoder(vocabulary, ["ll"]).push([HELLO, HELLO]) == TextPiece("he", 1, True)
    assert StreamDecoder(vocabulary, ["ll"], include_stop=True).push([HELLO]) == TextPiece("hell", 1, True)


def test_what_was_held_back_comes_at_the_end(vocabulary: Vocabulary) -> None:
    decoder = StreamDecoder(vocabulary, ["loud"])
    assert decoder.push([HELLO]).text == "hel"
    assert decoder.finish() == TextPiece("lo", 0, False)


def test_unfinished_character_comes_at_the_end(vocabulary: Vocabulary) -> None:
    decoder = StreamDecoder(vocabulary, ["é"])
    assert decoder.push([*"aé".encode()[:-1]]) == TextPiece("a", 2, False)
    assert decoder.finish() == TextPiece("\ufffd", 0, False)


def test_stop_completed_by_the_end_of_the_text(vocabulary: Vocabulary) -> None:
    decoder = StreamDecoder(vocabulary, ["a\ufffd"])
    assert decoder.push([*b"xa\xc3"]).text == "x"
    assert decoder.finish() == TextPiece("", 0, True)


def test_stop_of_a_character_split_over_tokens(vocabulary: Vocabulary) -> None:
    assert StreamDecoder(vocabulary, ["你"]).push([*"ab你好".encode()]) == TextPiece("ab", 5, True)


def test_stops_are_ignored_until_the_least_number_of_tokens(vocabulary: Vocabulary) -> None:
    decoder = StreamDecoder(vocabulary, ["a"], min_tokens=2)
    assert decoder.push([*b"aaba"]) == TextPiece("aab", 4, True)


def test_special_token_neither_shows_nor_breaks_a_stop(vocabulary: Vocabulary) -> None:
    decoder = StreamDecoder(vocabulary, ["xy"])
    assert decoder.push([*b"ax", 260, *b"y"]) == TextPiece("a", 4, True)
    shown = StreamDecoder(vocabulary, ["<|im_end|>"], skip_special_tokens=False)
    assert shown.push([*b"a", 262]) == TextPiece("a", 2, True)


def test_token_bytes_joined_are_the_text(vocabulary: Vocabulary) -> None:
    ids = [HELLO, 260, *" 😀".encode()]
    decoder = StreamDecoder(vocabulary)
    text = decoder.push(ids).text + decoder.finish().text
    assert b"".join(map(decoder.token_bytes, ids)).decode() == text == "hello 😀"
    assert StreamDecoder(vocabulary, skip_special_tokens=False).token_bytes(260) == b"<|endoftext|>"
