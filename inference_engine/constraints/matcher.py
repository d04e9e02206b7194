"""Where one request is in its grammar."""

from collections.abc import Callable, Sequence

import numpy as np
from llguidance import LLMatcher
from numpy.typing import NDArray

from inference_engine.contract.codes import Code

from .building import first_line
from .errors import ConstraintError
from .vocabulary import WORD_BITS, Vocabulary

Mask = NDArray[np.int32]
"""[words] or [rows, words], little-endian bits: 1 where the token may be sampled."""


class Matcher:
    """Follows the output tokens of one request. Not thread-safe: one thread at a time.

    The state is a function of the output ids alone, so `follow` rebuilds it after a failover and brings it up
    to date after anything else. End ids are never consumed: sampling one ends the request.

    Matchers of one compiled grammar share its lexer, whose states are limited and may all have been used by
    others: then this one goes on with a grammar built for it alone (`rebuild`), so that no request fails of
    what another did.
    """

    __slots__ = ("_grammar", "_output_ids", "_rebuild", "vocabulary")

    def __init__(
        self, grammar: LLMatcher, vocabulary: Vocabulary, rebuild: Callable[[], LLMatcher] | None = None
    ) -> None:
        self._grammar = grammar
        self._rebuild = rebuild
        self._output_ids: list[int] = []
        self.vocabulary = vocabulary

    @property
    def num_consumed(self) -> int:
        return len(self._output_ids)

    @property
    def is_accepting(self) -> bool:
        """The output is a whole value: end ids are allowed now, others may be too."""
        return bool(self._grammar.is_accepting())

    @property
    def is_complete(self) -> bool:
        """The output is a whole value and can't go on: only end ids are allowed."""
        return bool(self._grammar.is_stopped()) and not self._grammar.is_error()

    def fill(self, row: Mask) -> None:
        """Write the next token's mask into row, int32 [words]; releases the GIL. Raises ConstraintError."""
        assert row.dtype == np.int32 and row.shape == (self.vocabulary.num_words,)
        assert row.flags.c_contiguous
        self._grammar.unsafe_compute_mask_ptr(row.ctypes.data, row.nbytes)
        if self._grammar.is_error() or not row.any():
            self._renew()
            self._grammar.unsafe_compute_mask_ptr(row.ctypes.data, row.nbytes)
            self._check()
            if not row.any():
                raise _failure("no token can continue this output")

    def fill_drafts(self, draft_ids: Sequence[int], rows: Mask) -> int:
        """Masks at a position and after each draft token, for as long as the grammar allows the drafts.

        Fills rows [0..n] of int32 [len(draft_ids) + 1, words] and returns n, the drafts allowed; the state
        is as before. Raises ConstraintError if there is no mask for the position itself.
        """
        self.fill(rows[0])
        num_before = self.num_consumed
        try:
            for index, draft_id in enumerate(draft_ids):
                if draft_id in self.vocabulary.end_ids or not is_allowed(rows[index], draft_id):
                    return index
                self.advance(draft_id)
                self.fill(rows[index + 1])
        except ConstraintError:
            return index
        finally:
            self.roll_back(self.num_consumed - num_before)
        return len(draft_ids)

    def advance(self, token_id: int) -> None:
        """Consume the token that was sampled. Raises ConstraintError if the grammar doesn't allow it."""
        is_ordinary = 0 <= token_id < self.vocabulary.size and token_id not in self.vocabulary.end_ids
        if not is_ordinary or not self._consume(token_id):
            raise ConstraintError(f"output token {token_id} doesn't match the constraint", param="output_ids")
        self._output_ids.append(token_id)

    def roll_back(self, num_tokens: int) -> None:
        """Forget the last tokens. Raises ConstraintError where the grammar is past repair."""
        assert 0 <= num_tokens <= len(self._output_ids)
        if not num_tokens:
            return
        del self._output_ids[-num_tokens:]
        if not self._grammar.rollback(num_tokens) or self._grammar.is_error():
            self._renew()

    def follow(self, output_ids: Sequence[int]) -> None:
        """Make these the consumed tokens, given that the ones consumed already are among or beyond them.

        Raises ConstraintError, param `output_ids`, if they don't match.
        """
        self.roll_back(max(0, len(self._output_ids) - len(output_ids)))
        for token_id in output_ids[len(self._output_ids) :]:
            self.advance(token_id)

    def _consume(self, token_id: int) -> bool:
        """try_consume leaves the grammar usable where consume would put it into an error for good."""
        if self._grammar.try_consume_tokens([token_id]) == 1:
            return True
        if self._rebuild is None and not self._grammar.is_error():
            return False
        self._renew()
        return bool(self._grammar.try_consume_tokens([token_id]) == 1)

    def _renew(self) -> None:
        """Go on with a grammar of its own, once. Raises ConstraintError where it is of its own already."""
        if self._rebuild is None:
            self._check()
            raise _failure("no token can continue this output")
        self._grammar = self._rebuild()
        self._rebuild = None
        if self._output_ids:
            self._grammar.consume_tokens(self._output_ids)
        self._check()

    def _check(self) -> None:
        if self._grammar.is_error():
            raise _failure(first_line(self._grammar.get_error()))


def is_allowed(row: Mask, token_id: int) -> bool:
    """Whether a mask row, int32 [words], allows the token."""
    word, bit = divmod(token_id, WORD_BITS)
    return 0 <= word < len(row) and bool(int(row[word]) >> bit & 1)


def _failure(reason: str) -> ConstraintError:
    return ConstraintError(reason, code=Code.UNSUPPORTED_FEATURE)
