"""The backend for GPUs: our own Triton kernels; triton_kernels.py has the layout and the reasons.

It works on whatever device its tensors are on. With TRITON_INTERPRET=1 that may be the CPU, for tests.
"""

import functools
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.execution.attention import triton_kernels as kernels
from inference_engine.execution.attention.backend import (
    AttentionBackend,
    AttentionRule,
    KvLayer,
    LayerSpec,
    UnsupportedAttention,
)
from inference_engine.execution.attention.metadata import AttentionMetadata
from inference_engine.execution.attention.triton_interpreter import is_interpreted, repair_loop_bounds

MAX_HEAD_DIM = 256
SMALLEST_DOT = 16
"""Rows, columns and depth of a matrix product are at least so many."""
PACKED_ROWS = 32
"""Query rows times the heads that share a KV head, in one program."""
TILE, NARROW_TILE = 32, 16
WIDE_BYTES = 512
"""Of one token's key: more than so many take the narrow tile."""
MAX_SPLITS = 16
PROGRAMS_PER_PROCESSOR = 2
"""Splits are made until the multiprocessors have so many programs each."""
CPU_PROCESSORS = 8
"""Pretended by the interpreter, so that it splits as a GPU would."""


class TritonBackend(AttentionBackend):
    """keys and values [num_blocks, K, 16, D]."""

    name = "triton"

    def __init__(self, device: str | torch.device = "cuda", *, batch_invariant: bool = True) -> None:
        """batch_invariant: never split a row's KV among programs, as few rows with long contexts are else."""
        if is_interpreted():
            repair_loop_bounds()
        self.device = torch.device(device)
        self.batch_invariant = batch_invariant

    @property
    def numerics(self) -> str:
        """Splits follow from the number of processors, products from the kind of GPU."""
        is_gpu = self.device.type == "cuda"
        kind = torch.cuda.get_device_name(self.device) if is_gpu else "interpreter"
        return f"{self.name} {triton.__version__} {kind} {'whole' if self.batch_invariant else 'split'}"

    def check_layer(self, spec: LayerSpec) -> None:
        super().check_layer(spec)
        if spec.head_dim > MAX_HEAD_DIM:
            raise UnsupportedAttention(
                f"the triton attention backend needs a head dimension of at most {MAX_HEAD_DIM}, "
                f"not {spec.head_dim}"
            )

    def allocate(self, spec: LayerSpec, num_blocks: int) -> KvLayer:
        self.check_layer(spec)
        shape = (num_blocks, spec.num_kv_heads, BLOCK_SIZE, spec.head_dim)
        keys, values = (torch.zeros(shape, dtype=spec.dtype, device=self.device) for _ in range(2))
        return KvLayer(spec, num_blocks, keys, values)

    def write(self, layer: KvLayer, key: Tensor, value: Tensor, metadata: AttentionMetadata) -> None:
        _check_rows(key, layer)
        _check_rows(value, layer)
        kernels.store[(key.shape[0], key.shape[1])](
            key, value, metadata.slot_mapping, layer.keys, layer.values,
            key.stride(0), key.stride(1), value.stride(0), value.stride(1), layer.keys.stride(0),
            DIM=layer.spec.head_dim, PADDED_DIM=_padded(layer.spec.head_dim),
        )  # fmt: skip

    def _attend(
        self, layer: KvLayer, query: Tensor, metadata: AttentionMetadata, rule: AttentionRule
    ) -> Tensor:
        _check_rows(query, layer)
        num_rows, num_heads, dim = query.shape
        group = num_heads // layer.spec.num_kv_heads
        output = torch.empty(query.shape, dtype=query.dtype, device=query.device)
        splits = self.num_splits(metadata, layer.spec.num_kv_heads)
        partial = self._partial_sums(splits, query)
        rows = max(PACKED_ROWS // group, 1)
        kernels.attend[(num_rows, layer.spec.num_kv_heads, splits)](
            query, layer.keys, layer.values, output, *partial,
            metadata.sequence_of_row, metadata.query_start_loc, metadata.seq_lens, metadata.block_table,
            output if rule.sinks is None else rule.sinks,
            rule.scale, rule.softcap or 1.0, rule.sliding_window or 0,
            query.stride(0), query.stride(1), metadata.block_table.stride(0), layer.keys.stride(0), num_rows,
            HEADS=num_heads, GROUP=group, DIM=dim, PADDED_DIM=_padded(dim),
            ROWS=rows, PACKED=_padded(rows * group), TILE=tile_of(layer.spec),
            HAS_CAP=rule.softcap is not None, HAS_SINKS=rule.sinks is not None, SPLITS=splits,
            MULTIPLIES=_factor_type(layer.spec.dtype),
        )  # fmt: skip
        if splits > 1:
            kernels.combine[(num_rows, num_heads)](
                *partial, output, metadata.sequence_of_row, num_rows,
                HEADS=num_heads, DIM=dim, PADDED_DIM=_padded(dim), SPLITS=splits,
            )  # fmt: skip
        return output

    def num_splits(self, metadata: AttentionMetadata, num_kv_heads: int) -> int:
        """Into how many parts the KV of each row is split: a power of 2, of what the shapes alone say."""
        if self.batch_invariant:
            return 1
        longest = metadata.block_table.shape[1] * BLOCK_SIZE // TILE
        wanted = PROGRAMS_PER_PROCESSOR * _num_processors(self.device) // (metadata.num_rows * num_kv_heads)
        return 1 << max(0, min(wanted, longest, MAX_SPLITS).bit_length() - 1)

    def _partial_sums(self, splits: int, query: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """For the splits' programs; without splits nobody looks at them."""
        shape = (splits, *query.shape) if splits > 1 else (1, 1, 1)
        whole = torch.empty(shape, dtype=torch.float32, device=query.device)
        maximum, total = (torch.empty(shape[:-1], dtype=torch.float32, device=query.device) for _ in range(2))
        return whole, maximum, total

    def gather(self, layer: KvLayer, block_ids: list[int]) -> tuple[Tensor, Tensor]:
        index = torch.tensor(block_ids, device=self.device)
        keys, values = (kv[index].transpose(1, 2).flatten(0, 1) for kv in (layer.keys, layer.values))
        return keys, values

    def copy_block(self, layer: KvLayer, source: int, destination: int) -> None:
        layer.keys[destination] = layer.keys[source]
        layer.values[destination] = layer.values[source]


@functools.cache
def _num_processors(device: torch.device) -> int:
    if device.type != "cuda":
        return CPU_PROCESSORS
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def tile_of(spec: LayerSpec) -> int:
    """KV positions that a program looks at together: what shared memory holds, of queries and values too."""
    return NARROW_TILE if _padded(spec.head_dim) * spec.dtype.itemsize > WIDE_BYTES else TILE


def _factor_type(dtype: torch.dtype) -> Any:
    """What tensor cores multiply. The interpreter can't multiply bf16: there it is fp32 of equal value."""
    return tl.bfloat16 if dtype == torch.bfloat16 and not is_interpreted() else tl.float32


def _padded(size: int) -> int:
    return max(SMALLEST_DOT, triton.next_power_of_2(size))


def _check_rows(rows: Tensor, layer: KvLayer) -> None:
    """The kernels take strides of rows and heads, and nothing else on trust."""
    if rows.dtype != layer.spec.dtype or rows.shape[2] != layer.spec.head_dim or rows.stride(2) != 1:
        raise ValueError(f"rows {tuple(rows.shape)} of {rows.dtype} are not of a layer like {layer.spec}")
    if rows.shape[1] % layer.spec.num_kv_heads:
        raise ValueError(f"{rows.shape[1]} heads are no multiple of {layer.spec.num_kv_heads} KV heads")
