"""The masks of one step: only rows that have a constraint get one, filled beside the forward pass."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .errors import ConstraintError
from .matcher import Mask
from .vocabulary import Vocabulary

Failures = dict[int, ConstraintError]


class FillsRows(Protocol):
    """A matcher, as far as this module needs one."""

    def fill(self, row: Mask) -> None:
        """Write a mask into row, int32 [words]. Raises ConstraintError."""


@dataclass(frozen=True, slots=True)
class StepMasks:
    """masks[i] belongs to the i-th matcher given; failures[i] says why it has none."""

    masks: Mask
    """int32 [n, words]. A view into a buffer that the next `start` overwrites."""
    failures: Failures


class MaskFiller:
    """Fills masks in threads of its own; llguidance releases the GIL, so this overlaps with the model."""

    def __init__(self, vocabulary: Vocabulary, *, max_rows: int, num_threads: int = 1) -> None:
        self._buffer: Mask = np.zeros((max_rows, vocabulary.num_words), np.int32)
        self._num_threads = num_threads
        self._threads = ThreadPoolExecutor(num_threads, thread_name_prefix="octavo-masks")

    def start(self, matchers: Sequence[FillsRows]) -> "PendingMasks":
        """Begin; collect with `result()` before sampling. No matcher may be touched until then."""
        rows = self._buffer[: len(matchers)]
        assert len(rows) == len(matchers), "more constrained rows than max_rows"
        num_shares = min(self._num_threads, len(matchers))
        shares = [range(first, len(matchers), num_shares) for first in range(num_shares)]
        filled = [self._threads.submit(_fill, matchers, rows, share) for share in shares]
        return PendingMasks(rows, filled)

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)


class PendingMasks:
    def __init__(self, rows: Mask, filled: "list[Future[Failures]]") -> None:
        self._rows = rows
        self._filled = filled

    def result(self) -> StepMasks:
        """Waits for the last of them. A matcher that fails fails alone."""
        failures = {index: error for future in self._filled for index, error in future.result().items()}
        return StepMasks(self._rows, failures)


def _fill(matchers: Sequence[FillsRows], rows: Mask, share: range) -> Failures:
    failures = {}
    for index in share:
        try:
            matchers[index].fill(rows[index])
        except ConstraintError as error:
            failures[index] = error
    return failures


def allowed_tokens(masks: Mask, vocab_size: int) -> NDArray[np.bool_]:
    """bool [n, vocab] of int32 [n, words]: True where the token may be sampled."""
    bits = np.unpackbits(masks.view(np.uint8), axis=-1, count=vocab_size, bitorder="little")
    return bits.view(np.bool_)
