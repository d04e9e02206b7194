"""Streams of tokens, pushed in any portions, against all of them at once."""

import json

from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from stand_ins.tiny_text import byte_level_tokenizer
from text.decoding import IncrementalDecoder, Vocabulary
from text.stream_decoder import StreamDecoder
from text.token_bytes import token_table

RAW = byte_level_tokenizer()
TOKENIZER = Tokenizer.from_buffer(RAW)
SPECIAL = [TOKENIZER.token_to_id(name) for name in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")]
VOCABULARY = Vocabulary(token_table(json.loads(RAW), TOKENIZER, 0), SPECIAL)

TEXT = st.text(max_size=40)
TOKEN_IDS = st.lists(st.integers(0, len(VOCABULARY.all_bytes) - 1), max_size=60)


def portions(token_ids: list[int], sizes: list[int]) -> list[list[int]]:
    parts, start = [], 0
    for size in sizes:
        parts.append(token_ids[start : start + size])
        start += size
    return [*parts, token_ids[start:]]


@given(TEXT)
def test_valid_text_never_shows_a_replacement(text: str) -> None:
    decoder = IncrementalDecoder(VOCABULARY)
    deltas = [decoder.push(token) for token in text.encode()]
    assert "".join(deltas) == text
    assert decoder.finish() == ""


@given(TOKEN_IDS, st.booleans())
def test_any_tokens_give_the_text_of_all_at_once(token_ids: list[int], skip: bool) -> None:
    decoder = IncrementalDecoder(VOCABULARY, skip_special_tokens=skip)
    text = "".join(map(decoder.push, token_ids)) + decoder.finish()
    assert text == VOCABULARY.decode(token_ids, skip_special_tokens=skip)
    assert text == TOKENIZER.decode(token_ids, skip_special_tokens=skip)


@given(
    TOKEN_IDS,
    st.lists(st.integers(0, 5), max_size=30),
    st.lists(TEXT.filter(bool), max_size=4),
    st.booleans(),
)
def test_portions_change_neither_text_nor_count(
    token_ids: list[int], sizes: list[int], stops: list[str], include: bool
) -> None:
    outcomes = []
    for parts in (portions(token_ids, sizes), [[token] for token in token_ids], [token_ids]):
        decoder = StreamDecoder(VOCABULARY, stops, include_stop=include)
        pieces = [decoder.push(part) for part in parts]
        pieces.append(decoder.finish())
        text, num_tokens = "".join(piece.text for piece in pieces), sum(piece.num_tokens for piece in pieces)
        outcomes.append((text, num_tokens, decoder.stopped))
    assert outcomes[0] == outcomes[1] == outcomes[2]


@given(TEXT, st.data())
def test_a_stop_taken_from_the_text_ends_it_there(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    stop = text[start : start + data.draw(st.integers(1, 4))]
    decoder = StreamDecoder(VOCABULARY, [stop] if stop else [])
    piece, end = decoder.push(list(text.encode())), decoder.finish()
    expected = text.split(stop)[0] if stop else text
    assert piece.text + end.text == expected
    assert piece.stopped == bool(stop)
    if stop:
        assert piece.num_tokens == len((expected + stop).encode())
