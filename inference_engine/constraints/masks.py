"""The masks of one step: only rows that have a constraint get one, filled beside the forward pass."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .errors import ConstraintError
from .matcher import Mask, Matcher
from .vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class StepMasks:
    """masks[i] belongs to the i-th matcher given; failures[i] says why it has none."""

    masks: Mask
    """int32 [n, words]. A view into a buffer that the next `start` overwrites."""
    failures: dict[int, ConstraintError]


class MaskFiller:
    """Fills masks in threads of its own; llguidance releases the GIL, so this overlaps with the model."""

    def __init__(self, vocabulary: Vocabulary, *, max_rows: int, num_threads: int = 1) -> None:
        self._buffer: Mask = np.zeros((max_rows, vocabulary.num_words), np.int32)
        self._threads = ThreadPoolExecutor(num_threads, thread_name_prefix="octavo-masks")

    def start(self, matchers: Sequence[Matcher]) -> "PendingMasks":
        """Begin; collect with `result()` before sampling. No matcher may be touched until then."""
        rows = self._buffer[: len(matchers)]
        assert len(rows) == len(matchers), "more constrained rows than max_rows"
        filled = [
            self._threads.submit(_fill, matcher, row) for matcher, row in zip(matchers, rows, strict=True)
        ]
        return PendingMasks(rows, filled)

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)


class PendingMasks:
    def __init__(self, rows: Mask, filled: list[Future[ConstraintError | None]]) -> None:
        self._rows = rows
        self._filled = filled

    def result(self) -> StepMasks:
        """Waits for the last of them. A matcher that fails fails alone."""
        outcomes = [future.result() for future in self._filled]
        failures = {index: error for index, error in enumerate(outcomes) if error is not None}
        return StepMasks(self._rows, failures)


def _fill(matcher: Matcher, row: Mask) -> ConstraintError | None:
    try:
        matcher.fill(row)
    except ConstraintError as error:
        return error
    return None


def allowed_tokens(masks: Mask, vocab_size: int) -> NDArray[np.bool_]:
    """bool [n, vocab] of int32 [n, words]: True where the token may be sampled."""
    bits = np.unpackbits(masks.view(np.uint8), axis=-1, count=vocab_size, bitorder="little")
    return bits.view(np.bool_)
