"""top-k, top-p and min-p, in this order, and the draw from what they leave.

Tokens are ranked by logit, the lower id first among equals, and every filter keeps a prefix of that ranking:
top-k the first k, top-p the shortest prefix that reaches its share of what top-k left (at least one token),
min-p the tokens at least min_p times as likely as the first. The prefix is looked for among the 256 highest
logits; a row whose prefix may reach further is sorted by itself.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from inference_engine.execution.sampling.vocabulary import invert, reduce_blocks, take_blocks

NUM_CANDIDATES = 256
NARROW_IDS = 16
"""Width of the blocks whose maxima lead to the candidates."""


@dataclass(frozen=True, slots=True)
class Filters:
    """One entry a row. top_k is the vocabulary's size where it is off."""

    top_k: Tensor
    """int64 [n]"""
    top_p: Tensor
    """float64 [n]"""
    min_p: Tensor
    """float64 [n]"""

    def of(self, index: Tensor) -> "Filters":
        return Filters(self.top_k[index], self.top_p[index], self.min_p[index])


def draw_filtered(logits: Tensor, probs: Tensor, rows: Tensor, filters: Filters, uniform: Tensor) -> Tensor:
    """int64 [n]: one token for each of `rows` [n] of logits (after temperature) and probs, both [R, V]."""
    ids, values = top_candidates(logits, rows)
    candidate_probs = _probs_of(probs, rows, ids)
    rank_order = values.sort(dim=1, descending=True, stable=True).indices
    num_kept = prefix_lengths(candidate_probs.gather(1, rank_order), filters)
    last_kept = values.gather(1, rank_order.gather(1, num_kept.unsqueeze(1) - 1)).squeeze(1)
    tokens = _draw_prefix(ids, candidate_probs, rank_order, num_kept, uniform)
    needs_sort = (filters.top_k > NUM_CANDIDATES) | (last_kept <= values.amin(1))
    if ids.shape[1] < logits.shape[1]:
        for index in needs_sort.nonzero().flatten():
            one = index.unsqueeze(0)
            row = rows[index]
            tokens[one] = _draw_sorted(logits[row], probs[row], filters.of(one), uniform[one])
    return tokens


def top_candidates(logits: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Ids (rising) and logits [n, C] of each row's C = min(256, V) highest logits.

    Which of several equal to the lowest are among them is not defined. An id of the C highest lies in one of
    the C blocks of highest maximum: were it in another, C blocks would each hold a logit as high as its own.
    """
    count = min(NUM_CANDIDATES, logits.shape[1])
    maxima = reduce_blocks(logits, torch.amax, NARROW_IDS)[rows]
    blocks = maxima.topk(min(count, maxima.shape[1]), sorted=False).indices
    ids, values = take_blocks(logits, rows, blocks, NARROW_IDS)
    values = values.masked_fill(ids >= logits.shape[1], -torch.inf)
    chosen = values.topk(count, sorted=False).indices
    ids, order = ids.gather(1, chosen).sort(1)
    return ids, values.gather(1, chosen).gather(1, order)


def _probs_of(probs: Tensor, rows: Tensor, ids: Tensor) -> Tensor:
    """float64 [n, C]; 0 for the ids past the end of the vocabulary that stand in where logits are -inf."""
    size = probs.shape[1]
    return probs[rows.unsqueeze(1), ids.clamp(max=size - 1)].double().masked_fill(ids >= size, 0.0)


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
    top_k = int(filters.top_k)
    if top_k < logits.shape[0]:
        return (logits >= logits.topk(top_k).values[-1]).nonzero().flatten()
    # Tokens less likely than this are together less than half of what top-p leaves out.
    least = (1.0 - float(filters.top_p)) / (2 * logits.shape[0])
    return (probs >= least).nonzero().flatten()
