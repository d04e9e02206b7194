"""Where tokens are drawn: the same interface for our own kernel and for plain torch.

Both are a function of single rows and bitwise the same in any batch, and both keep to the same rule: ids are
ranked by logit, the lower id first among equals; top-k keeps the first k, top-p the shortest prefix that
reaches its share of what top-k left (at least one token), min-p the tokens at least min_p times as likely as
the first; the draw is the inverse CDF in id order. They round differently, so a token may differ between them
where its uniform falls within some 1e-6 of a boundary: the fingerprint says which one an engine has.
"""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Filters:
    """One entry a row. top_k is the vocabulary's size where it is off."""

    top_k: Tensor
    """int64 [n]"""
    top_p: Tensor
    """float64 [n]"""
    min_p: Tensor
    """float64 [n]"""

    def of(self, index: Tensor | slice) -> "Filters":
        return Filters(self.top_k[index], self.top_p[index], self.min_p[index])


class Draws(Protocol):
    def highest_if_finite(self, logits: Tensor) -> Tensor:
        """float32 [R]: the highest of each row [R, V]; not finite where one of its logits isn't."""

    def first_highest(self, logits: Tensor) -> Tensor:
        """int64 [R]: the id of each row's highest logit, the lowest id among equals. None may be NaN."""

    def draw(
        self,
        logits: Tensor,
        index: Tensor,
        firsts: Tensor,
        temperatures: Tensor,
        filters: Filters,
        uniform: Tensor,
    ) -> Tensor:
        """int64 [n]: tokens of the rows in index [n] of logits [R, V], whose highest are at firsts [R].

        temperatures (above 0, float32), filters and uniform (float64) are [n]. Logits may be -inf, but for
        the highest.
        """
