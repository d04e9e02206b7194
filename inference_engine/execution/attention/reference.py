"""The oracle: plain torch, one query row at a time, simple enough to be read as the definition.

Each row is computed by the same procedure on that row's own keys and values, so nothing else in the step can
change a bit of it: softmax over splits of 16 absolute positions, then the splits put together in order.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.execution.attention.backend import AttentionRule, KvLayer
from inference_engine.execution.attention.metadata import AttentionMetadata
from inference_engine.execution.attention.token_major import TokenMajorBackend


class ReferenceBackend(TokenMajorBackend):
    name = "reference"
    batch_invariant = True
    split_tokens = BLOCK_SIZE
    """KV positions in one split. A constant: a split chosen by the batch would change a row's rounding."""

    def _attend(
        self, layer: KvLayer, query: Tensor, metadata: AttentionMetadata, rule: AttentionRule
    ) -> Tensor:
        output = torch.zeros(query.shape, dtype=query.dtype)
        bounds = metadata.query_start_loc.tolist()
        positions = metadata.positions.tolist()
        for sequence, length in enumerate(metadata.seq_lens.tolist()):
            blocks = metadata.block_table[sequence, : -(-length // BLOCK_SIZE)].tolist()
            keys, values = (kv.float() for kv in self.gather(layer, blocks))
            for row in range(bounds[sequence], bounds[sequence + 1]):
                end = positions[row] + 1
                begin = 0 if rule.sliding_window is None else max(0, end - rule.sliding_window)
                output[row] = self._attend_row(
                    query[row].float() * rule.scale, keys, values, begin, end, rule
                )
        return output

    def _attend_row(
        self, query: Tensor, keys: Tensor, values: Tensor, begin: int, end: int, rule: AttentionRule
    ) -> Tensor:
        """Output [H, D] of one scaled query [H, D] over positions begin .. end - 1 of the keys [S, K, D]."""
        num_kv_heads, head_dim = keys.shape[1:]
        before, after = begin % self.split_tokens, -end % self.split_tokens
        # [splits, split_tokens, K, 1 or H / K, D]; positions outside begin .. end - 1 are zeros, weighted by
        # 0.
        shape = (-1, self.split_tokens, num_kv_heads, 1, head_dim)
        key, value = (pad(kv[begin:end], (0, 0, 0, 0, before, after)).reshape(shape) for kv in (keys, values))
        is_seen = pad(torch.ones(end - begin, dtype=torch.bool), (before, after))
        scores = (key * query.reshape(num_kv_heads, -1, head_dim)).sum(-1)
        if rule.softcap is not None:
            scores = rule.softcap * torch.tanh(scores / rule.softcap)
        scores = scores.masked_fill(~is_seen.reshape(*scores.shape[:2], 1, 1), -math.inf)
        maximum = scores.amax(1)
        weights = torch.exp(scores - maximum.unsqueeze(1))
        # Each split on its own scale; then all on the scale of the largest.
        highest = maximum.amax(0)
        if rule.sinks is not None:
            sinks = rule.sinks.float().reshape(num_kv_heads, -1)
            highest = torch.maximum(highest, sinks)
        rescale = torch.exp(maximum - highest)
        total = (weights.sum(1) * rescale).sum(0)
        if rule.sinks is not None:
            total = total + torch.exp(sinks - highest)
        output = ((weights.unsqueeze(-1) * value).sum(1) * rescale.unsqueeze(-1)).sum(0)
        return (output / total.unsqueeze(-1)).reshape(query.shape)
