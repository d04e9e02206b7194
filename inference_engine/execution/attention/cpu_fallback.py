"""Attention where no compiler is at hand: torch's own matrix products, fast enough to serve.

How torch splits a product depends on its shape, so a row's last bits vary with the batch.
"""

import torch
from torch import Tensor

from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.execution.attention.backend import AttentionRule, KvLayer
from inference_engine.execution.attention.metadata import AttentionMetadata
from inference_engine.execution.attention.token_major import TokenMajorBackend

MAX_QUERY_ROWS = 64
"""Rows of a chunk scored at once: bounds the score matrix."""


class CpuFallbackBackend(TokenMajorBackend):
    """Sequences of one query row (decodes) are computed together, longer chunks one by one."""

    name = "cpu-fallback"
    batch_invariant = False

    def _attend(
        self, layer: KvLayer, query: Tensor, metadata: AttentionMetadata, rule: AttentionRule
    ) -> Tensor:
        output = torch.zeros(query.shape, dtype=query.dtype)
        for sequences, rows in _groups(metadata):
            scaled = query[rows].float() * rule.scale
            attended = _attend_group(layer, scaled, metadata, sequences, metadata.positions[rows], rule)
            output[rows] = attended.to(query.dtype)
        return output


def _groups(metadata: AttentionMetadata) -> list[tuple[Tensor, Tensor]]:
    """Sequences int64 [n] with their rows int64 [n, L], L the same for all n."""
    starts = metadata.query_start_loc[:-1].long()
    lengths = metadata.query_start_loc[1:].long() - starts
    decodes = (lengths == 1).nonzero().flatten()
    groups = [(decodes, starts[decodes].unsqueeze(1))] if len(decodes) else []
    for sequence in (lengths > 1).nonzero().flatten().tolist():
        rows = torch.arange(int(starts[sequence]), int(starts[sequence] + lengths[sequence]))
        groups += [(torch.tensor([sequence]), part.unsqueeze(0)) for part in rows.split(MAX_QUERY_ROWS)]
    return groups


def _attend_group(
    layer: KvLayer,
    query: Tensor,
    metadata: AttentionMetadata,
    sequences: Tensor,
    positions: Tensor,
    rule: AttentionRule,
) -> Tensor:
    """Output [n, L, H, D] of scaled float32 queries of that shape at positions [n, L]."""
    num_seen = int(positions.max()) + 1
    table = metadata.block_table[sequences, : -(-num_seen // BLOCK_SIZE)].long()
    keys, values = (kv[table].flatten(1, 2)[:, :num_seen].float() for kv in (layer.keys, layer.values))
    kv_position = torch.arange(num_seen)
    seen = kv_position <= positions.unsqueeze(-1)
    if rule.sliding_window is not None:
        seen &= kv_position > positions.unsqueeze(-1) - rule.sliding_window
    # What no row sees may be anything, NaN included, which a weight of 0 would not silence.
    values = values.masked_fill(~seen.any(1)[:, :, None, None], 0.0)
    grouped = query.unflatten(2, (layer.spec.num_kv_heads, -1))
    scores = torch.einsum("nlkgd,nskd->nkgls", grouped, keys)
    if rule.softcap is not None:
        scores = rule.softcap * torch.tanh(scores / rule.softcap)
    weights = _softmax(scores.masked_fill(~seen[:, None, None], -torch.inf), rule.sinks)
    return torch.einsum("nkgls,nskd->nlkgd", weights, values).flatten(2, 3)


def _softmax(scores: Tensor, sinks: Tensor | None) -> Tensor:
    """Weights of scores [n, K, H / K, L, S], with the heads' sinks in the sum if there are any."""
    if sinks is None:
        return scores.softmax(-1)
    columns = sinks.float().view(1, scores.shape[1], -1, 1, 1).expand(*scores.shape[:-1], 1)
    return torch.cat([scores, columns], -1).softmax(-1)[..., :-1]
