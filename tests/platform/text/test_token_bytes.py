import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from stand_ins.tiny_text import byte_level_tokenizer, sentencepiece_tokenizer
from text.errors import ModelTextError
from text.token_bytes import token_table


def table_of(raw: bytes, vocab_size: int = 0) -> list[bytes]:
    return token_table(json.loads(raw), Tokenizer.from_buffer(raw), vocab_size)


def test_byte_level_tokens_cover_every_byte() -> None:
    table = table_of(byte_level_tokenizer(special=["<é>"]))
    assert table[:256] == [bytes([byte]) for byte in range(256)]
    assert table[256:] == [b"he", b"ll", b"hell", b"hello", "<é>".encode()]


def test_sentencepiece_tokens_spell_spaces_and_bytes() -> None:
    raw = sentencepiece_tokenizer()
    table, full = table_of(raw), Tokenizer.from_buffer(raw)
    assert table[full.token_to_id("\u2581hi")] == b" hi"
    assert table[full.token_to_id("<0xE2>")] == b"\xe2"
    assert table[full.token_to_id("[INST]")] == b"[INST]"


def test_ids_without_a_token_stand_for_nothing() -> None:
    table = table_of(byte_level_tokenizer(), vocab_size=300)
    assert len(table) == 300
    assert table[-1] == b""


def test_joined_bytes_are_the_text(smollm2_dir: Path, shared_data: Path) -> None:
    raw = (smollm2_dir / "tokenizer.json").read_bytes()
    table, full = table_of(raw), Tokenizer.from_buffer(raw)
    for text in json.loads((shared_data / "naughty_strings" / "blns.json").read_text()):
        ids = full.encode(text).ids
        assert b"".join(table[token] for token in ids).decode("utf-8", "replace") == full.decode(ids)


@pytest.mark.parametrize("decoder", [None, {"type": "WordPiece", "prefix": "##", "cleanup": True}])
def test_other_decoders_are_refused(decoder: object) -> None:
    raw = json.dumps(json.loads(byte_level_tokenizer()) | {"decoder": decoder}).encode()
    with pytest.raises(ModelTextError):
        table_of(raw)
