"""The attention kernels on random chunks and pages against fp32, bitwise against themselves, and in time."""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from benchmarks.gpu.clock import median_ms
from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.execution.attention.backend import AttentionBackend, LayerSpec
from inference_engine.execution.attention.metadata import build_metadata
from inference_engine.execution.attention.reference import ReferenceBackend
from inference_engine.execution.attention.triton import TritonBackend

TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 2.0**-6}


@dataclass(frozen=True)
class Case:
    num_heads: int
    num_kv_heads: int
    head_dim: int
    window: int | None = None
    softcap: float | None = None
    has_sinks: bool = False

    def rule(self, device: torch.device) -> dict[str, Any]:
        sinks = torch.linspace(-2, 4, self.num_heads, device=device) if self.has_sinks else None
        scale = self.head_dim**-0.5
        return {"scale": scale, "sliding_window": self.window, "softcap": self.softcap, "sinks": sinks}


CASES = [
    Case(32, 8, 64),
    Case(32, 8, 128),
    Case(8, 4, 256, window=100, softcap=50.0),
    Case(64, 8, 64, window=128, has_sinks=True),
    Case(9, 3, 40),
]


def check_kernels(device: torch.device, lengths: list[int], cases: list[Case]) -> list[dict[str, Any]]:
    """For each case, dtype and way to split: the largest error, and whether it is small enough."""
    return [
        _check(case, dtype, splits, device, lengths)
        for case, dtype, splits in itertools.product(cases, TOLERANCES, (False, True))
    ]


def _check(
    case: Case, dtype: torch.dtype, splits: bool, device: torch.device, lengths: list[int]
) -> dict[str, Any]:
    triton = TritonBackend(device, batch_invariant=not splits)
    rows = _random_rows(case, lengths, dtype)
    expected = _run(ReferenceBackend(), case, [each.float() for each in rows], lengths, torch.float32)
    output = _run(triton, case, rows, lengths, dtype)
    error = max((a - b).abs().max().item() for a, b in zip(output, expected, strict=True))
    again = _run(triton, case, rows, lengths, dtype, seed=1)
    same = all(torch.equal(a, b) for a, b in zip(output, again, strict=True))
    passed = error <= TOLERANCES[dtype] and (same or splits)
    return {"case": str(case), "dtype": str(dtype), "splits": splits, "max_error": error, "passed": passed}


def _random_rows(case: Case, lengths: list[int], dtype: torch.dtype) -> list[Tensor]:
    """Query, key and value of all sequences, one after another."""
    generator = torch.Generator().manual_seed(0)
    heads = (case.num_heads, case.num_kv_heads, case.num_kv_heads)
    shapes = [(sum(lengths), count, case.head_dim) for count in heads]
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def _run(
    backend: AttentionBackend,
    case: Case,
    rows: list[Tensor],
    lengths: list[int],
    dtype: torch.dtype,
    seed: int = 0,
) -> list[Tensor]:
    """Each sequence's last output, fp32 on the CPU: a prefill of all but the last token, then a decode.

    Blocks lie in an order of the seed's own, in a pool full of NaN.
    """
    counts = [math.ceil(length / BLOCK_SIZE) for length in lengths]
    order = torch.randperm(sum(counts), generator=torch.Generator().manual_seed(seed))
    tables = [part.tolist() for part in order.split(counts)]
    layer = backend.allocate(LayerSpec(case.num_kv_heads, case.head_dim, dtype), sum(counts))
    layer.keys.fill_(math.nan)
    layer.values.fill_(math.nan)
    ends = list(itertools.accumulate(lengths))
    prefill = [(n, 0, length - 1) for n, length in enumerate(lengths) if length > 1]
    decode = [(n, length - 1, 1) for n, length in enumerate(lengths)]
    for chunks in (prefill, decode):
        _, starts, sizes = zip(*chunks, strict=True)
        metadata = build_metadata(starts, sizes, [tables[n] for n, _, _ in chunks]).to(backend.device)
        firsts = [ends[n] - lengths[n] + start for n, start, _ in chunks]
        index = torch.cat(
            [torch.arange(first, first + size) for first, size in zip(firsts, sizes, strict=True)]
        )
        query, key, value = (each[index].to(backend.device) for each in rows)
        backend.write(layer, key, value, metadata)
        output = backend.attend(layer, query, metadata, **case.rule(backend.device))
    return list(output.float().cpu())


def time_decode_attention(
    device: torch.device, batch: int, context: int, repetitions: int
) -> dict[str, float]:
    """One layer's decode attention of a 7B, and what reading its KV takes at least."""
    case = CASES[1]
    backend = TritonBackend(device, batch_invariant=False)
    blocks = context // BLOCK_SIZE
    tables = torch.randperm(batch * blocks).view(batch, blocks).tolist()
    layer = backend.allocate(LayerSpec(case.num_kv_heads, case.head_dim, torch.bfloat16), batch * blocks)
    metadata = build_metadata([context - 1] * batch, [1] * batch, tables).to(device)
    query = torch.randn(batch, case.num_heads, case.head_dim, dtype=torch.bfloat16, device=device)
    elapsed = median_ms(lambda: backend.attend(layer, query, metadata, scale=0.1), device, repetitions)
    return {"batch": batch, "context": context, "ms": elapsed, "kv_bytes": 2.0 * layer.keys.nbytes}
