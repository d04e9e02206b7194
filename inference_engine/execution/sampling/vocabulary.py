"""Reductions over a vocabulary, whose results for a row never depend on how many rows there are.

torch sums a single long row with several threads, and so in another order than the same row among others.
Here every row is cut into blocks at fixed token ids, and what is left to add up afterwards is short.

    ids    0 .. 255 | 256 .. 511 | ... | last ids, fewer than 256
    block     0     |     1      | ... |         n - 1
"""

from collections.abc import Callable

import torch
from torch import Tensor

BLOCK_IDS = 256


def reduce_blocks(values: Tensor, reduce: Callable[[Tensor, int], Tensor]) -> Tensor:
    """[R, V] -> [R, ceil(V / 256)]: reduce(block, -1) of every block of consecutive token ids."""
    size = values.shape[1]
    whole = size // BLOCK_IDS * BLOCK_IDS
    parts = []
    if whole:
        parts.append(reduce(values[:, :whole].unflatten(1, (-1, BLOCK_IDS)), -1))
    if whole < size:
        parts.append(reduce(values[:, whole:], -1).unsqueeze(1))
    return torch.cat(parts, 1) if len(parts) > 1 else parts[0]


def take_block(values: Tensor, block: Tensor) -> tuple[Tensor, Tensor]:
    """Token ids and their values [R, 256] of one block [R, 1] a row; ids past the last repeat the last."""
    ids = (block * BLOCK_IDS + torch.arange(BLOCK_IDS)).clamp(max=values.shape[1] - 1)
    return ids, values.gather(1, ids)


def first_argmax(values: Tensor) -> Tensor:
    """int64 [R]: the id of each row's largest value, the lowest id among equals. No value may be NaN."""
    block = reduce_blocks(values, torch.amax).argmax(1, keepdim=True)
    ids, candidates = take_block(values, block)
    return ids.gather(1, candidates.argmax(1, keepdim=True)).squeeze(1)


def invert(cumulative: Tensor, target: Tensor) -> Tensor:
    """int64 [R]: the first index where cumulative [R, n] exceeds target [R]; its own weight is positive.

    Both are float64. The target is kept below the total, which rounding may have let it reach.
    """
    below_total = torch.minimum(target, cumulative[:, -1] * (1 - 2.0**-50))
    return torch.searchsorted(cumulative, below_total.unsqueeze(1), right=True).squeeze(1)


def draw(weights: Tensor, uniform: Tensor) -> Tensor:
    """int64 [R]: inverse CDF in token-id order of weights [R, V] (of any sum) at uniform float64 [R]."""
    cumulative = reduce_blocks(weights, torch.sum).double().cumsum(1)
    target = uniform * cumulative[:, -1]
    block = invert(cumulative, target).unsqueeze(1)
    before = torch.where(block > 0, cumulative.gather(1, (block - 1).clamp(min=0)), 0.0).squeeze(1)
    ids, inside = take_block(weights, block)
    is_new = ids.diff(dim=1, prepend=ids[:, :1] - 1) > 0
    within = (inside.double() * is_new).cumsum(1)
    return ids.gather(1, invert(within, target - before).unsqueeze(1)).squeeze(1)
