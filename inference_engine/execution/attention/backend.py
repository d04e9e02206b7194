"""The interface between the model runner and an attention backend.

A backend owns the layout of the KV blocks; block ids and the block size (16 tokens) are all that it shares
with the scheduler. It is stateless: `allocate` returns the storage of one layer, every other call takes it
back. Per step and layer the runner calls `write`, then `attend` (the rows just written are visible to their
queries).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.execution.attention.metadata import AttentionMetadata


class UnsupportedAttention(ValueError):
    """A layer of a kind that this backend can't hold; the message says what."""


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """What decides the size and layout of one layer's KV blocks."""

    num_kv_heads: int
    head_dim: int
    dtype: torch.dtype
    """torch.float32 or torch.bfloat16; queries, keys, values and outputs all have it."""


@dataclass(frozen=True, slots=True)
class AttentionRule:
    """How scores become weights, beyond the causal mask."""

    scale: float
    """Scores are query . key * scale."""
    sliding_window: int | None = None
    """Positions seen, the query's own included; None sees all."""
    softcap: float | None = None
    """Scaled scores s become softcap * tanh(s / softcap)."""
    sinks: Tensor | None = None
    """[H]: for each head one more score in its softmax, whose weight goes nowhere."""


@dataclass(frozen=True, slots=True)
class KvLayer:
    """KV storage of one layer. The shapes of `keys` and `values` are the backend's business."""

    spec: LayerSpec
    num_blocks: int
    keys: Tensor
    values: Tensor


class AttentionBackend(ABC):
    """T query rows, H query heads, K KV heads (H a multiple of K), D head dimension.

    Tensors of shape [T, heads, D] need a last dimension of stride 1; rows and heads may have any stride, so
    that slices of a fused QKV product need no copy.
    """

    name: str
    batch_invariant: bool
    """A row's output is bitwise the same whatever else is in the step, however its prompt was chunked and
    wherever its blocks lie."""

    dtypes = frozenset({torch.float32, torch.bfloat16})
    device = torch.device("cpu")
    """Where the KV blocks are, and everything that `write` and `attend` are given."""

    @property
    def numerics(self) -> str:
        """What decides its bits besides its code: part of the fingerprint."""
        return self.name

    @abstractmethod
    def allocate(self, spec: LayerSpec, num_blocks: int) -> KvLayer:
        """Storage of one layer, its pages touched. Raises UnsupportedAttention for a layer it can't hold."""

    def check_layer(self, spec: LayerSpec) -> None:
        """Raises UnsupportedAttention where this backend can't hold such a layer."""
        if spec.dtype not in self.dtypes:
            raise UnsupportedAttention(
                f"the {self.name} attention backend holds no KV blocks of {spec.dtype}"
            )

    def bytes_per_block(self, spec: LayerSpec) -> int:
        """Bytes that one block of one layer takes, K and V together."""
        return 2 * BLOCK_SIZE * spec.num_kv_heads * spec.head_dim * spec.dtype.itemsize

    @abstractmethod
    def write(self, layer: KvLayer, key: Tensor, value: Tensor, metadata: AttentionMetadata) -> None:
        """Store key and value [T, K, D] at metadata.slot_mapping; rows with slot -1 are skipped."""

    def attend(
        self,
        layer: KvLayer,
        query: Tensor,
        metadata: AttentionMetadata,
        *,
        scale: float,
        sliding_window: int | None = None,
        softcap: float | None = None,
        sinks: Tensor | None = None,
    ) -> Tensor:
        """Attention output [T, H, D], contiguous, in the query's dtype; padding rows are zeros.

        query is [T, H, D]; what else is given makes an AttentionRule.
        """
        if sliding_window is not None and sliding_window < 1:
            raise ValueError(f"a sliding window of {sliding_window} sees nothing")
        return self._attend(layer, query, metadata, AttentionRule(scale, sliding_window, softcap, sinks))

    @abstractmethod
    def _attend(
        self, layer: KvLayer, query: Tensor, metadata: AttentionMetadata, rule: AttentionRule
    ) -> Tensor:
        """`attend` after its check."""

    @abstractmethod
    def gather(self, layer: KvLayer, block_ids: list[int]) -> tuple[Tensor, Tensor]:
        """Copies of keys and values [len(block_ids) * 16, K, D] in token order. For tests and inspection."""

    @abstractmethod
    def copy_block(self, layer: KvLayer, source: int, destination: int) -> None:
        """Copy all 16 tokens of one block to another (copy-on-write of a fork)."""
