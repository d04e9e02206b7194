"""Text of a few tokens at a time against text of all of them at once."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

from stand_ins.tiny_text import byte_level_tokenizer
from text.decoding import IncrementalDecoder, Vocabulary
from text.model_text import ModelText
from text.token_bytes import token_table

MIXED = "Repeat this twice: 😀 👨‍👩‍👧‍👦 你好 नमस्ते שלום"
END = 258
"""Id of the special token of `vocabulary`."""


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    """Ids 0 to 255 are the bytes."""
    raw = byte_level_tokenizer(special=["<|end|>"], merges=[("h", "e"), ("l", "l")])
    return Vocabulary(token_table(json.loads(raw), Tokenizer.from_buffer(raw), 0), [END])


def pieces(decoder: IncrementalDecoder, token_ids: list[int]) -> list[str]:
    return [*map(decoder.push, token_ids), decoder.finish()]


def test_no_character_is_shown_before_it_is_whole(vocabulary: Vocabulary) -> None:
    deltas = pieces(IncrementalDecoder(vocabulary), list(MIXED.encode()))
    assert "".join(deltas) == MIXED
    assert not any("\ufffd" in delta for delta in deltas)


def test_every_cut_ends_with_one_replacement_at_most(vocabulary: Vocabulary) -> None:
    data = MIXED.encode()
    for length in range(len(data)):
        deltas = pieces(IncrementalDecoder(vocabulary), list(data[:length]))
        assert not any("\ufffd" in delta for delta in deltas[:-1])
        assert "".join(deltas) == data[:length].decode("utf-8", "replace")


def test_malformed_bytes_are_replaced_as_in_the_reference(vocabulary: Vocabulary, shared_data: Path) -> None:
    lines = (shared_data / "utf8" / "utf8tests.bin").read_bytes().split(b"\n")
    wanted = (shared_data / "utf8" / "utf8.replace.ref.txt").read_bytes().split(b"\n")
    cases = [line for line in lines if b"valid:" in line and not line.startswith(b"#")]
    assert len(cases) > 50
    for case in cases:
        assert "".join(pieces(IncrementalDecoder(vocabulary), list(case))).encode() in wanted


def test_special_tokens_are_left_out_unless_wanted(vocabulary: Vocabulary) -> None:
    ids = [*b"a", END, *b"b"]
    assert pieces(IncrementalDecoder(vocabulary), ids) == ["a", "", "b", ""]
    assert pieces(IncrementalDecoder(vocabulary, skip_special_tokens=False), ids) == ["a", "<|end|>", "b", ""]
    assert vocabulary.decode(ids) == "ab"
    assert vocabulary.decode(ids, skip_special_tokens=False) == "a<|end|>b"


def test_special_token_inside_a_character_does_not_break_it(vocabulary: Vocabulary) -> None:
    first, *rest = "é".encode()
    assert pieces(IncrementalDecoder(vocabulary), [first, END, *rest]) == ["", "", "é", ""]


def test_real_text_agrees_with_the_tokenizers_own_decoders(
    smollm2_text: ModelText, smollm2_dir: Path, shared_data: Path
) -> None:
    full = Tokenizer.from_buffer((smollm2_dir / "tokenizer.json").read_bytes())
    questions = (shared_data / "mt_bench" / "mt_bench_question.jsonl").read_text().splitlines()
    for text in [
        MIXED,
        *json.loads((shared_data / "naughty_strings" / "blns.json").read_text()),
        *questions[:20],
    ]:
        ids, stream = full.encode(text).ids, DecodeStream(skip_special_tokens=True)
        decoder = IncrementalDecoder(smollm2_text.vocabulary)
        deltas = [decoder.push(token) for token in ids]
        assert "".join(deltas) + decoder.finish() == full.decode(ids) == smollm2_text.decode(ids)
        if full.decode(ids).isascii():
            assert deltas == [stream.step(full, token) or "" for token in ids]
