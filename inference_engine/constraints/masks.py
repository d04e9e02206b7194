"""The masks of one step: only rows that have a constraint get one, filled beside the forward pass."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .errors import ConstraintError
from .matcher import Mask
from .vocabulary import Vocabulary

Failures = dict[int, ConstraintError]
Counts = dict[int, int]


class FillsRows(Protocol):
    """A matcher, as far as this module needs one."""

    def fill(self, row: Mask) -> None:
        """Write a mask into row, int32 [words]. Raises ConstraintError."""

    def fill_drafts(self, draft_ids: Sequence[int], rows: Mask) -> int:
        """Masks before and after each draft allowed, int32 [drafts + 1, words]; returns how many those
        are."""


MaskJob = tuple[FillsRows, Sequence[int]]
"""A matcher, and drafts that may come next."""


@dataclass(frozen=True, slots=True)
class StepMasks:
    masks: list[Mask]
    """masks[i], int32 [1 + drafts allowed, words], belongs to the i-th matcher given: for its position, and
    after each draft. Views into a buffer that the next `start` overwrites."""
    failures: Failures
    """failures[i]: why the i-th has none, whatever masks[i] holds."""


class MaskFiller:
    """Fills masks in threads of its own; llguidance releases the GIL, so this overlaps with the model."""

    def __init__(self, vocabulary: Vocabulary, *, max_rows: int, num_threads: int = 1) -> None:
        self._buffer: Mask = np.zeros((max_rows, vocabulary.num_words), np.int32)
        self._num_threads = num_threads
        self._threads = ThreadPoolExecutor(num_threads, thread_name_prefix="octavo-masks")

    def start(self, jobs: Sequence[MaskJob]) -> "PendingMasks":
        """Begin; collect with `result()` before sampling. No matcher may be touched until then."""
        bounds = list(accumulate((1 + len(drafts) for _, drafts in jobs), initial=0))
        assert bounds[-1] <= len(self._buffer), "more constrained rows than max_rows"
        rows = [self._buffer[start:end] for start, end in pairwise(bounds)]
        num_shares = min(self._num_threads, len(jobs))
        shares = [range(first, len(jobs), num_shares) for first in range(num_shares)]
        return PendingMasks(rows, [self._threads.submit(_fill, jobs, rows, share) for share in shares])

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)


class PendingMasks:
    def __init__(self, rows: list[Mask], filled: "list[Future[tuple[Counts, Failures]]]") -> None:
        self._rows = rows
        self._filled = filled

    def result(self) -> StepMasks:
        """Waits for the last of them. A matcher that fails fails alone."""
        failures: Failures = {}
        masks = list(self._rows)
        for future in self._filled:
            counts, failed = future.result()
            failures |= failed
            for index, count in counts.items():
                masks[index] = masks[index][:count]
        return StepMasks(masks, failures)


def _fill(jobs: Sequence[MaskJob], rows: list[Mask], share: range) -> tuple[Counts, Failures]:
    """How many rows of each job have a mask, where drafts leave that open; and who failed."""
    counts: Counts = {}
    failures: Failures = {}
    for index in share:
        matcher, drafts = jobs[index]
        try:
            if drafts:
                counts[index] = 1 + matcher.fill_drafts(drafts, rows[index])
            else:
                matcher.fill(rows[index][0])
        except ConstraintError as error:
            failures[index] = error
    return counts, failures


def allowed_tokens(masks: Mask, vocab_size: int) -> NDArray[np.bool_]:
    """bool [n, vocab] of int32 [n, words]: True where the token may be sampled."""
    bits = np.unpackbits(masks.view(np.uint8), axis=-1, count=vocab_size, bitorder="little")
    return bits.view(np.bool_)
