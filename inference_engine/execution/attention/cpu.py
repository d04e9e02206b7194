"""The CPU backend: our own C++ kernel; kernels/paged_attention.cpp has the layout and the reasons."""

import math

import torch
from torch import Tensor

from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.execution.attention.backend import (
    AttentionBackend,
    AttentionRule,
    KvLayer,
    LayerSpec,
    UnsupportedAttention,
)
from inference_engine.execution.attention.build import load_kernel
from inference_engine.execution.attention.metadata import AttentionMetadata

LANES = 16
"""Floats in one vector of the kernel; the head dimension of values is rounded up to it."""
MAX_HEAD_DIM = 512


class CpuBackend(AttentionBackend):
    """keys [num_blocks, K, D, 16] (transposed inside the block), values [num_blocks, K, 16, D rounded up].

    In bf16 pairs lie side by side: keys [num_blocks, K, D / 2, 16, 2], values [num_blocks, K, 8, D up, 2].
    """

    name = "cpu"
    batch_invariant = True

    def __init__(self) -> None:
        """Raises KernelBuildError where the kernel can't be compiled."""
        load_kernel()
        self._kernel = torch.ops.octavo

    def check_layer(self, spec: LayerSpec) -> None:
        super().check_layer(spec)
        if spec.head_dim % 2 or spec.head_dim > MAX_HEAD_DIM:
            raise UnsupportedAttention(
                f"the cpu attention backend needs an even head dimension of at most {MAX_HEAD_DIM}, "
                f"not {spec.head_dim}"
            )

    def allocate(self, spec: LayerSpec, num_blocks: int) -> KvLayer:
        self.check_layer(spec)
        heads, width = (num_blocks, spec.num_kv_heads), _padded(spec.head_dim)
        keys: tuple[int, ...] = (spec.head_dim, BLOCK_SIZE)
        values: tuple[int, ...] = (BLOCK_SIZE, width)
        if spec.dtype != torch.float32:
            keys, values = (spec.head_dim // 2, BLOCK_SIZE, 2), (BLOCK_SIZE // 2, width, 2)
        return KvLayer(
            spec, num_blocks, *(self._allocate((*heads, *part), spec.dtype) for part in (keys, values))
        )

    def _allocate(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """On huge pages, and all of them mapped."""
        storage: Tensor = self._kernel.allocate_huge(math.prod(shape) * dtype.itemsize)
        return storage.view(dtype).view(shape).fill_(0)

    def bytes_per_block(self, spec: LayerSpec) -> int:
        dimensions = spec.head_dim + _padded(spec.head_dim)
        return BLOCK_SIZE * spec.num_kv_heads * dimensions * spec.dtype.itemsize

    def write(self, layer: KvLayer, key: Tensor, value: Tensor, metadata: AttentionMetadata) -> None:
        self._kernel.write(layer.keys, layer.values, key, value, metadata.slot_mapping)

    def _attend(
        self, layer: KvLayer, query: Tensor, metadata: AttentionMetadata, rule: AttentionRule
    ) -> Tensor:
        output = torch.empty(query.shape, dtype=query.dtype)
        self._kernel.attend(
            layer.keys,
            layer.values,
            query,
            metadata.positions,
            metadata.sequence_of_row,
            metadata.block_table,
            rule.scale,
            rule.sliding_window or 0,
            rule.softcap or 0.0,
            None if rule.sinks is None else rule.sinks.detach().float().contiguous(),
            output,
        )
        return output

    def gather(self, layer: KvLayer, block_ids: list[int]) -> tuple[Tensor, Tensor]:
        keys, values = (kv[torch.tensor(block_ids)] for kv in (layer.keys, layer.values))
        if layer.spec.dtype != torch.float32:
            keys, values = keys.transpose(3, 4).flatten(2, 3), values.transpose(3, 4).flatten(2, 3)
        keys = keys.permute(0, 3, 1, 2).flatten(0, 1)
        values = values.permute(0, 2, 1, 3).flatten(0, 1)
        return keys, values[..., : layer.spec.head_dim]

    def copy_block(self, layer: KvLayer, source: int, destination: int) -> None:
        layer.keys[destination] = layer.keys[source]
        layer.values[destination] = layer.values[source]


def _padded(head_dim: int) -> int:
    return -(-head_dim // LANES) * LANES
