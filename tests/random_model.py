"""A model of random logits: whatever it writes that makes sense, the mask alone has seen to."""

import random
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inference_engine.constraints.masks import allowed_tokens
from inference_engine.constraints.matcher import Matcher
from inference_engine.constraints.vocabulary import Vocabulary

END_SHARE = 0.4
SHORT_SHARE = 0.7
"""How often it ends where it may, and how often it takes a token of one byte: else no string ever closes."""


@dataclass(frozen=True, slots=True)
class Written:
    token_ids: list[int]
    has_ended: bool
    text: str


class RandomModel:
    def __init__(self, vocabulary: Vocabulary, seed: int) -> None:
        self._vocabulary = vocabulary
        self._random = random.Random(seed)
        self._row = np.zeros(vocabulary.num_words, np.int32)
        self._names = {id_: content for content, id_ in vocabulary.added_tokens.items()}
        self._short = short_tokens(vocabulary)
        self._ends = np.zeros(vocabulary.size, bool)
        self._ends[sorted(vocabulary.end_ids)] = True

    def write(self, matcher: Matcher, max_tokens: int) -> Written:
        """Tokens until an end id is drawn, at most max_tokens. The end id is not among them."""
        token_ids: list[int] = []
        while len(token_ids) < max_tokens:
            token_id = self.next_token(matcher)
            if token_id in self._vocabulary.end_ids:
                return self._written(token_ids, True)
            matcher.advance(token_id)
            token_ids.append(token_id)
        return self._written(token_ids, False)

    def next_token(self, matcher: Matcher) -> int:
        matcher.fill(self._row)
        allowed = allowed_tokens(self._row, self._vocabulary.size)
        ends, others = allowed & self._ends, allowed & ~self._ends
        if ends.any() and (not others.any() or self._random.random() < END_SHARE):
            return self._draw(ends)
        short = others & self._short
        if short.any() and self._random.random() < SHORT_SHARE:
            return self._draw(short)
        return self._draw(others)

    def _draw(self, among: NDArray[np.bool_]) -> int:
        return int(self._random.choice(among.nonzero()[0]))

    def _written(self, token_ids: list[int], has_ended: bool) -> Written:
        text = self._bytes_of(token_ids).decode("utf-8", "strict" if has_ended else "replace")
        return Written(token_ids, has_ended, text)

    def _bytes_of(self, token_ids: list[int]) -> bytes:
        """Added tokens by their own names, which the constraints' tokenizer doesn't know."""
        decode, names = self._vocabulary.tokenizer.decode_bytes, self._names
        return b"".join(names[id_].encode() if id_ in names else decode([id_]) for id_ in token_ids)


def short_tokens(vocabulary: Vocabulary) -> NDArray[np.bool_]:
    decode = vocabulary.tokenizer.decode_bytes
    return np.array([len(decode([token_id])) == 1 for token_id in range(vocabulary.size)])
