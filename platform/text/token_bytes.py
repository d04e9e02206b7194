"""The exact bytes each token stands for, read off a tokenizer's vocabulary and its decoder.

Two families cover the served models: byte-level BPE, whose vocabulary spells each byte as a printable
character, and sentencepiece-like vocabularies, where U+2581 is a space and `<0x0A>` a byte. A token stands
for the same bytes wherever it occurs: output goes on from a prompt, so no leading space is ever dropped.
"""

import re
from typing import Any

from tokenizers import Tokenizer

from .errors import ModelTextError

SPACE_MARK = "\u2581"
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_KNOWN_STEPS = {"ByteFallback", "ByteLevel", "Fuse", "Metaspace", "Replace", "Strip"}


def token_table(tokenizer_json: dict[str, Any], tokenizer: Tokenizer, vocab_size: int) -> list[bytes]:
    """Bytes by token id; ids without a token stand for nothing. Raises ModelTextError for other decoders."""
    steps = _decoder_steps(tokenizer_json.get("decoder"))
    added = {token["id"] for token in tokenizer_json.get("added_tokens") or []}
    vocab = tokenizer.get_vocab(with_added_tokens=True)
    table = [b""] * max(vocab_size, max(vocab.values(), default=-1) + 1)
    spell = _byte_level if "ByteLevel" in steps else _sentencepiece
    for token, token_id in vocab.items():
        table[token_id] = token.encode() if token_id in added else spell(token)
    return table


def _decoder_steps(decoder: dict[str, Any] | None) -> set[str]:
    listed = (decoder or {}).get("decoders") or [decoder or {"type": "none"}]
    steps = {str(step.get("type")) for step in listed}
    if not steps <= _KNOWN_STEPS or not steps & {"ByteLevel", "ByteFallback", "Metaspace"}:
        raise ModelTextError(f"decoder {', '.join(sorted(steps))} is not supported")
    return steps


def _byte_level(token: str) -> bytes:
    try:
        return bytes(_BYTE_OF_CHARACTER[character] for character in token)
    except KeyError:
        return token.encode()


def _sentencepiece(token: str) -> bytes:
    match = _BYTE_TOKEN.fullmatch(token)
    return bytes([int(match[1], 16)]) if match else token.replace(SPACE_MARK, " ").encode()


def _byte_of_character() -> dict[str, int]:
    """GPT-2's alphabet: printable Latin-1 stands for itself, the other bytes, in order, for U+0100 and on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable}
    return alphabet | {chr(0x100 + index): byte for index, byte in enumerate(others)}


_BYTE_OF_CHARACTER = _byte_of_character()
