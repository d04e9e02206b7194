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


def apply_masks(scores: Tensor, logits: Tensor, masks: GrammarMasks) -> tuple[Tensor, dict[int, Code]]:
    """scores [R, V] with -inf where a mask forbids, and the rows that have no token, with why.

    Copies scores where they are the logits themselves. A row whose every allowed token is forbidden for
    another reason keeps its scores, finite as they are: it fails.
    """
    failures = dict(masks.failures)
    if not masks.rows:
        return scores, failures
    index = torch.tensor(masks.rows)
    masked = scores[index].masked_fill_(~masks.allowed, -torch.inf)
    is_possible = masked.amax(1) > -torch.inf
    for position in (~is_possible).nonzero().flatten().tolist():
        failures[masks.rows[position]] = Code.UNSUPPORTED_FEATURE
    target = scores.clone() if scores is logits else scores
    target[index[is_possible]] = masked[is_possible]
    return target, failures
