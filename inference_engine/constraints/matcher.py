"""Where one request is in its grammar."""

from collections.abc import Sequence

import numpy as np
from llguidance import LLMatcher
from numpy.typing import NDArray

from inference_engine.contract.codes import Code

from .building import first_line
from .errors import ConstraintError
from .vocabulary import Vocabulary

Mask = NDArray[np.int32]
"""[words] or [rows, words], little-endian bits: 1 where the token may be sampled."""


class Matcher:
    """Follows the output tokens of one request. Not thread-safe: one thread at a time.

    The state is a function of the output ids alone, so `follow` rebuilds it after a failover and brings it up
    to date after anything else. End ids are never consumed: sampling one ends the request.
    """

    __slots__ = ("_grammar", "_num_consumed", "vocabulary")

    def __init__(self, grammar: LLMatcher, vocabulary: Vocabulary) -> None:
        self._grammar = grammar
        self._num_consumed = 0
        self.vocabulary = vocabulary

    @property
    def num_consumed(self) -> int:
        return self._num_consumed

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
        self._check()
        if not row.any():
            raise _dead_end()

    def fill_drafts(self, draft_ids: Sequence[int], rows: Mask) -> int:
        """Masks at a position and after each draft token, for as long as the grammar allows the drafts.

        Fills rows [0..n] of int32 [len(draft_ids) + 1, words] and returns n, the drafts allowed; the state
        is as before. Raises ConstraintError.
        """
        num_allowed = 0
        self.fill(rows[0])
        try:
            for draft_id in draft_ids:
                if not self._try(draft_id):
                    break
                num_allowed += 1
                self.fill(rows[num_allowed])
        finally:
            self.roll_back(num_allowed)
        return num_allowed

    def advance(self, token_id: int) -> None:
        """Consume the token that was sampled. Raises ConstraintError if the grammar doesn't allow it."""
        if not self._try(token_id):
            raise ConstraintError(f"output token {token_id} doesn't match the constraint", param="output_ids")

    def roll_back(self, num_tokens: int) -> None:
        """Forget the last tokens. Raises ConstraintError where the grammar is past repair."""
        assert 0 <= num_tokens <= self._num_consumed
        if num_tokens:
            self._grammar.rollback(num_tokens)
            self._check()
            self._num_consumed -= num_tokens

    def follow(self, output_ids: Sequence[int]) -> None:
        """Make these the consumed tokens, given that the ones consumed already are among or beyond them.

        Raises ConstraintError, param `output_ids`, if they don't match.
        """
        self.roll_back(max(0, self._num_consumed - len(output_ids)))
        for token_id in output_ids[self._num_consumed :]:
            self.advance(token_id)

    def _try(self, token_id: int) -> bool:
        """try_consume leaves the grammar usable where consume would put it into an error for good."""
        if token_id in self.vocabulary.end_ids or not 0 <= token_id < self.vocabulary.size:
            return False
        if self._grammar.try_consume_tokens([token_id]) != 1:
            self._check()
            return False
        self._num_consumed += 1
        return True

    def _check(self) -> None:
        if self._grammar.is_error():
            raise ConstraintError(first_line(self._grammar.get_error()), code=Code.UNSUPPORTED_FEATURE)


def _dead_end() -> ConstraintError:
    return ConstraintError("no token can continue this output", code=Code.UNSUPPORTED_FEATURE)
