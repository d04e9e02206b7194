"""Which tokens the constraints of one step allow: only rows that have a constraint are touched."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from inference_engine.contract.codes import Code


@dataclass(frozen=True, slots=True)
class GrammarMasks:
    rows: list[int]
    """Rows of logits that have a mask, rising."""
    allowed: Tensor
    """bool [len(rows), V]: where a token may be sampled."""
    failures: dict[int, Code] = field(default_factory=dict)
    """Rows whose constraint failed: they must have no token."""


class MaskedRows:
    """`logits`, float32 [R, V], with -inf where a mask forbids, until `undo`."""

    def __init__(self, logits: Tensor, masks: GrammarMasks | None) -> None:
        self._logits = logits
        self._before: tuple[Tensor, Tensor] | None = None
        self.failures: dict[int, Code] = {} if masks is None else dict(masks.failures)
        """Rows that have no token, with why; those whose every allowed token is otherwise forbidden are among
        them, and stay as they are."""
        if masks is not None and masks.rows:
            self._mask(masks)

    def undo(self) -> None:
        if self._before is not None:
            index, rows = self._before
            self._logits[index] = rows

    def _mask(self, masks: GrammarMasks) -> None:
        index = torch.tensor(masks.rows)
        before = self._logits[index]
        masked = before.masked_fill(~masks.allowed, -torch.inf)
        is_possible = masked.amax(1) > -torch.inf
        for position in (~is_possible).nonzero().flatten().tolist():
            self.failures[masks.rows[position]] = Code.UNSUPPORTED_FEATURE
        self._before = index, before
        self._logits[index[is_possible]] = masked[is_possible]
