"""A tokenizer as large as those of big families travels in one frame, and comes out as it went in."""

import random
import zlib

import pytest
from msgspec import structs

from inference_engine.contract import tokenizer_file
from inference_engine.contract.limits import MAX_FRAME_BYTES, MAX_PLAIN_TOKENIZER_BYTES
from inference_engine.contract.tokenizer_file import packed, tokenizer_of
from inference_engine.contract.wire import decode_engine_frame, engine_frame
from stand_ins.tiny_text import byte_level_tokenizer, description


def large_vocabulary() -> bytes:
    """34 MB of made-up words and merges, as a vocabulary of 262,144 has."""
    draw = random.Random(1)
    words = ["".join(draw.choices("aeinorstlu ▁", k=draw.randint(2, 12))) for _ in range(200_000)]
    lines = [f'      "{word}": {number},\n' for number, word in enumerate(words)]
    merges = [f'      [\n        "{word[:3]}",\n        "{word[3:]}"\n      ],\n' for word in words]
    text = "".join(lines + merges).encode()
    return text * (34_000_000 // len(text) + 1)


def test_a_small_file_travels_as_it_is_so_that_older_gateways_read_it() -> None:
    described = description(byte_level_tokenizer())
    assert packed(described) is described
    assert tokenizer_of(described) == byte_level_tokenizer()


def test_a_file_larger_than_a_frame_travels_packed() -> None:
    file = large_vocabulary()
    assert len(file) > 2 * MAX_FRAME_BYTES
    described = structs.replace(description(byte_level_tokenizer()), tokenizer_json=file)
    frame = engine_frame([packed(described)], step=0, has_work=False)
    assert len(frame) < MAX_FRAME_BYTES
    (arrived,) = decode_engine_frame(frame).messages
    assert arrived.tokenizer_json == b"" and tokenizer_of(arrived) == file


def test_the_limit_of_plain_ones_is_the_border() -> None:
    described = description(byte_level_tokenizer())
    full = structs.replace(described, tokenizer_json=b" " * MAX_PLAIN_TOKENIZER_BYTES)
    assert packed(full) is full
    over = packed(structs.replace(described, tokenizer_json=b" " * (MAX_PLAIN_TOKENIZER_BYTES + 1)))
    assert over.tokenizer_json == b"" and len(over.tokenizer_zlib) < 100_000


@pytest.mark.parametrize(
    "data", [b"no zlib", zlib.compress(b"cut off here")[:-3], zlib.compress(b"x" * 2_000)]
)
def test_what_cannot_be_unpacked_is_refused_without_filling_the_memory(monkeypatch, data: bytes) -> None:
    monkeypatch.setattr(tokenizer_file, "MAX_TOKENIZER_BYTES", 1_000)
    described = structs.replace(description(byte_level_tokenizer()), tokenizer_json=b"", tokenizer_zlib=data)
    with pytest.raises(ValueError, match="packed tokenizer"):
        tokenizer_of(described)
