"""Changes of single logits, for all rows of a step at once, in place, and taken back when it has its tokens.

Only the entries that change are read and written, so the cost follows the tokens that requests hold and not
rows x vocabulary. Every entry is computed by itself: no row depends on another.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from inference_engine.execution.sampling.row import SamplingRow

LARGEST = 1e30
"""Adjusted logits stay within this, so that they are finite at any temperature."""


class LogitEdits:
    """`logits`, float32 [R, V], as the rows' settings want them, until `undo`."""

    def __init__(self, logits: Tensor, rows: Sequence[SamplingRow]) -> None:
        self._logits = logits
        self._before: list[tuple[Tensor, Tensor, Tensor]] = []
        self._penalise(rows)
        self._add_bias(rows)
        self._forbid(rows)

    def undo(self) -> None:
        for index, ids, values in reversed(self._before):
            self._logits[index, ids] = values

    def _penalise(self, rows: Sequence[SamplingRow]) -> None:
        found = [
            (index, row.params, row.adjustment.history)
            for index, row in enumerate(rows)
            if row.adjustment is not None and len(row.adjustment.history.ids)
        ]
        if not found:
            return
        lengths = [len(history.ids) for _, _, history in found]
        index = _spread([index for index, _, _ in found], lengths)
        ids = torch.from_numpy(np.concatenate([history.ids for _, _, history in found]))
        counts = torch.from_numpy(np.concatenate([history.counts for _, _, history in found]))
        repetition = _spread([params.repetition_penalty for _, params, _ in found], lengths).float()
        presence = _spread([params.presence_penalty for _, params, _ in found], lengths)
        frequency = _spread([params.frequency_penalty for _, params, _ in found], lengths)
        amount = (frequency * counts + presence * (counts > 0)).float()
        before = self._logits[index, ids]
        repeated = torch.where(before > 0, before / repetition, before * repetition)
        self._put(index, ids, before, (repeated - amount).clamp(-LARGEST, LARGEST))

    def _add_bias(self, rows: Sequence[SamplingRow]) -> None:
        found = [
            (index, row.adjustment)
            for index, row in enumerate(rows)
            if row.adjustment is not None and len(row.adjustment.bias)
        ]
        if not found:
            return
        index = _spread([index for index, _ in found], [len(one.bias) for _, one in found])
        ids = torch.from_numpy(np.concatenate([one.bias_ids for _, one in found]))
        bias = torch.from_numpy(np.concatenate([one.bias for _, one in found]))
        before = self._logits[index, ids]
        self._put(index, ids, before, before + bias)

    def _forbid(self, rows: Sequence[SamplingRow]) -> None:
        size = self._logits.shape[1]
        found = [(index, id_) for index, row in enumerate(rows) for id_ in row.forbid_ids if id_ < size]
        if found:
            index, ids = torch.tensor(found).unbind(1)
            before = self._logits[index, ids]
            self._put(index, ids, before, torch.full_like(before, -torch.inf))

    def _put(self, index: Tensor, ids: Tensor, before: Tensor, values: Tensor) -> None:
        """Each (row, id) is there once."""
        self._before.append((index, ids, before))
        self._logits[index, ids] = values


def _spread(values: Sequence[float], lengths: Sequence[int]) -> Tensor:
    """[sum of lengths]: each value as often as its length says; int64 or float64."""
    return torch.from_numpy(np.repeat(np.array(values), lengths))
