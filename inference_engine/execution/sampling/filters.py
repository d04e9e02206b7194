"""top-k, top-p and min-p, in this order, and the draw from what they leave.

Tokens are ranked by logit, the lower id first among equals, and every filter keeps a prefix of that ranking:
top-k the first k, top-p the shortest prefix that reaches its share of what top-k left (at least one token),
min-p the tokens at least min_p times as likely as the first. The prefix is looked for among the 256 highest
logits; a row whose prefix may reach further is sorted by itself.
"""

import torch
from torch import Tensor

from inference_engine.execution.sampling.draws import Filters
from inference_engine.execution.sampling.vocabulary import invert

NUM_CANDIDATES = 256
GROUP_SIZE = 16
"""Ids in one of the groups whose maxima lead to the candidates."""


BUCKET_SHIFT = 20
"""Leaves sign, exponent and 3 bits of the mantissa of a float32: eight buckets an octave."""
MASS_MARGIN = 1e-4


def draw_filtered(logits: Tensor, probs: Tensor, filters: Filters, uniform: Tensor) -> Tensor:
    """int64 [n]: one token for each row of logits (after temperature) and probs, both float32 [n, V]."""
    ids = top_candidates(logits)
    values, candidate_probs = logits.gather(1, ids), probs.gather(1, ids).double()
    rank_order = values.sort(dim=1, descending=True, stable=True).indices
    num_kept = prefix_lengths(candidate_probs.gather(1, rank_order), filters)
    last_kept = values.gather(1, rank_order.gather(1, num_kept.unsqueeze(1) - 1)).squeeze(1)
    tokens = _draw_prefix(ids, candidate_probs, rank_order, num_kept, uniform)
    is_wide = (filters.top_k > NUM_CANDIDATES) & (filters.top_k < logits.shape[1])
    lowest = values.amin(1)
    # A lowest candidate of -inf: whatever isn't one of them is forbidden as well.
    needs_sort = (is_wide | (last_kept <= lowest)) & (lowest > -torch.inf)
    if ids.shape[1] < logits.shape[1]:
        for row in needs_sort.nonzero().flatten():
            one = row.unsqueeze(0)
            tokens[one] = _draw_sorted(logits[row], probs[row], filters.of(one), uniform[one])
    return tokens


def top_candidates(logits: Tensor) -> Tensor:
    """Ids [n, C], rising, of the C = min(256, V) highest of logits [n, V].

    Which of several equal to the lowest are among them is not defined, but for one row always the same.
    """
    if logits.shape[1] < NUM_CANDIDATES * GROUP_SIZE:
        chosen = logits.topk(min(NUM_CANDIDATES, logits.shape[1]), sorted=False).indices
    else:
        pool = _pool(logits)
        chosen = pool.gather(1, logits.gather(1, pool).topk(NUM_CANDIDATES, sorted=False).indices)
    return chosen.sort(1).values


def _pool(values: Tensor) -> Tensor:
    """Ids [n, about 4096] with the 256 highest values [n, V] among them.

    Ids that are V // 16 apart form a group. The 256 highest lie in the 256 groups of highest maximum: were
    one in another group, 256 groups would each hold a value as high. The last V % 16 ids are always in.
    """
    size = values.shape[1]
    num_groups = size // GROUP_SIZE
    maxima = values[:, : num_groups * GROUP_SIZE].unflatten(1, (GROUP_SIZE, num_groups)).amax(1)
    groups = maxima.topk(NUM_CANDIDATES, sorted=False).indices
    ids = (groups.unsqueeze(-1) + torch.arange(GROUP_SIZE) * num_groups).flatten(1)
    rest = torch.arange(num_groups * GROUP_SIZE, size)
    return torch.cat([ids, rest.expand(len(values), -1)], 1)


def prefix_lengths(ranked: Tensor, filters: Filters) -> Tensor:
    """int64 [n]: how many of the ranked probabilities, float64 [n, C], the filters keep; at least one."""
    count = ranked.shape[1]
    top_k = filters.top_k.clamp(max=count)
    cumulative = ranked.cumsum(1)
    # Without top-k the whole distribution counts, of which the candidates may be a part.
    mass = torch.where(filters.top_k <= count, cumulative.gather(1, top_k.unsqueeze(1) - 1).squeeze(1), 1.0)
    reached = (cumulative < (filters.top_p * mass).unsqueeze(1)).sum(1) + 1
    top_p = torch.where(filters.top_p < 1.0, reached, count)
    min_p = (ranked >= filters.min_p.unsqueeze(1) * ranked[:, :1]).sum(1)
    return torch.minimum(torch.minimum(top_k, top_p), min_p).clamp(1, count)


def _draw_prefix(ids: Tensor, probs: Tensor, rank_order: Tensor, num_kept: Tensor, uniform: Tensor) -> Tensor:
    """Draw in token-id order from candidates (ids rising) whose rank is below num_kept."""
    is_kept = torch.arange(ids.shape[1]) < num_kept.unsqueeze(1)
    weights = torch.zeros_like(probs).scatter(1, rank_order, is_kept.double()) * probs
    cumulative = weights.cumsum(1)
    return ids.gather(1, invert(cumulative, uniform * cumulative[:, -1]).unsqueeze(1)).squeeze(1)


def _draw_sorted(logits: Tensor, probs: Tensor, filters: Filters, uniform: Tensor) -> Tensor:
    """int64 [1]: as draw_filtered, for one row [V], from the ranking of all that top-p can reach."""
    ids = _reachable(logits, probs, filters)
    values, weights = logits[ids], probs[ids].double()
    rank_order = values.sort(dim=0, descending=True, stable=True).indices.unsqueeze(0)
    num_kept = prefix_lengths(weights[rank_order], filters)
    return _draw_prefix(ids.unsqueeze(0), weights.unsqueeze(0), rank_order, num_kept, uniform)


def _reachable(logits: Tensor, probs: Tensor, filters: Filters) -> Tensor:
    """Ids, rising, that hold every token the filters can keep, and every token top-k keeps."""
    top_k, top_p = int(filters.top_k), float(filters.top_p)
    if top_k < logits.shape[0]:
        return (logits >= logits.topk(top_k).values[-1]).nonzero().flatten()
    # The bits of positive floats rise with their value: the upper ones are buckets of a histogram of mass.
    bucket = probs.view(torch.int32) >> BUCKET_SHIFT
    mass = torch.bincount(bucket, weights=probs.double())
    above = mass.sum() - mass.cumsum(0)
    # Buckets are out of reach of top-p once those above them hold its share (and a little for rounding).
    return (bucket >= (above >= top_p + MASS_MARGIN).sum()).nonzero().flatten()
