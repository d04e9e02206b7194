"""The model's tokens as llguidance sees them: the bytes of each, and which ids end an output."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from llguidance import LLTokenizer

from .control_tokens import with_unspellable

WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Built once an engine (about a second), shared by all its matchers."""

    tokenizer: LLTokenizer
    """Text never becomes a control token in it; see control_tokens.py."""
    tokenizer_json: bytes = field(repr=False)
    size: int
    """The model's vocabulary: the number of logits in a row, rows of padding included."""
    end_ids: frozenset[int]
    added_tokens: Mapping[str, int] = field(repr=False)
    """Those that no text is ever merged into, by their content: control tokens, but others as well."""

    @property
    def num_words(self) -> int:
        """int32 words in one mask row: bit i of word w is token id 32 w + i."""
        return (self.size + WORD_BITS - 1) // WORD_BITS


class UnsupportedTokenizer(ValueError):
    """llguidance can't read this tokenizer, so the model serves no constraints."""


def load_vocabulary(tokenizer_json: bytes, *, vocab_size: int, end_ids: Iterable[int]) -> Vocabulary:
    """From the bytes of a tokenizer.json. Raises UnsupportedTokenizer."""
    ids = sorted(id_ for id_ in end_ids if id_ < vocab_size)
    if not ids:
        raise UnsupportedTokenizer("a model without end ids can't end a constrained output")
    added = {token["content"]: token["id"] for token in json.loads(tokenizer_json).get("added_tokens") or ()}
    as_it_is = _read(tokenizer_json, vocab_size, ids)
    control_ids = {id_ for id_ in added.values() if id_ < vocab_size and as_it_is.is_special_token(id_)}
    tokenizer = _read(with_unspellable(tokenizer_json, control_ids), vocab_size, ids)
    return Vocabulary(tokenizer, tokenizer_json, vocab_size, frozenset(ids), added)


def _read(tokenizer_json: bytes, vocab_size: int, end_ids: list[int]) -> LLTokenizer:
    slices = LLTokenizer.json_slices()
    try:
        return LLTokenizer(tokenizer_json.decode(), n_vocab=vocab_size, eos_token=end_ids, slices=slices)
    except ValueError as error:
        raise UnsupportedTokenizer(str(error)) from error
