"""Which tokens a request holds, and how often it has put them out: what penalties are computed from.

slot      0   1   2   3 | 4   5          ids of the prompt first (only where repetition counts), each once,
ids       3  17  40  99 | 7  12          then those that came new with an output
counts    0   2   0   0 | 1   1          times among the outputs
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

FIRST_CAPACITY = 64


class TokenHistory:
    """Outputs are added one at a time; the views `ids` and `counts` hold until the next one is."""

    def __init__(self, prompt_ids: Iterable[int]) -> None:
        """Of the prompt, [] where nothing looks at it."""
        known = list(dict.fromkeys(prompt_ids))
        self.num_outputs = 0
        self._slots = {token_id: slot for slot, token_id in enumerate(known)}
        self._ids: NDArray[np.int64] = np.array(known + [0] * FIRST_CAPACITY, dtype=np.int64)
        self._counts: NDArray[np.int64] = np.zeros(len(self._ids), dtype=np.int64)

    def copy(self) -> "TokenHistory":
        other = TokenHistory(())
        other.num_outputs, other._slots = self.num_outputs, dict(self._slots)
        other._ids, other._counts = self._ids.copy(), self._counts.copy()
        return other

    @property
    def ids(self) -> NDArray[np.int64]:
        """[n], each once."""
        return self._ids[: len(self._slots)]

    @property
    def counts(self) -> NDArray[np.int64]:
        """[n]"""
        return self._counts[: len(self._slots)]

    def add(self, token_id: int) -> None:
        slot = self._slots.setdefault(token_id, len(self._slots))
        if slot == len(self._ids):
            self._ids = np.concatenate([self._ids, np.zeros_like(self._ids)])
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
        self._ids[slot] = token_id
        self._counts[slot] += 1
        self.num_outputs += 1
