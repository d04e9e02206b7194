"""Random sequences for attention tests, run through a backend's pages in any order, and a dense oracle."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from inference_engine.execution.attention.backend import AttentionBackend, KvLayer, LayerSpec
from inference_engine.execution.attention.metadata import build_metadata

BLOCK = 16
Chunk = tuple[int, int, int]
"""Sequence, first position, length."""


@dataclass(frozen=True)
class Shape:
    num_heads: int
    num_kv_heads: int
    head_dim: int
    dtype: torch.dtype = torch.float32
    sliding_window: int | None = None
    softcap: float | None = None
    has_sinks: bool = False

    @property
    def sinks(self) -> Tensor | None:
        """[H], from far below the scores to above them."""
        return torch.linspace(-4, 9, self.num_heads).to(self.dtype) if self.has_sinks else None

    @property
    def spec(self) -> LayerSpec:
        return LayerSpec(self.num_kv_heads, self.head_dim, self.dtype)

    @property
    def scale(self) -> float:
        return self.head_dim**-0.5


@dataclass(frozen=True)
class Sequence:
    """query [L, H, D], key and value [L, K, D] of one whole sequence."""

    query: Tensor
    key: Tensor
    value: Tensor

    def __len__(self) -> int:
        return len(self.query)


def random_sequences(shape: Shape, lengths: list[int], seed: int = 0) -> list[Sequence]:
    generator = torch.Generator().manual_seed(seed)

    def rows(length: int, heads: int, spread: float) -> Tensor:
        values = torch.randn(length, heads, shape.head_dim, generator=generator) * spread
        return values.to(shape.dtype)

    return [
        Sequence(
            rows(length, shape.num_heads, 2.0),
            rows(length, shape.num_kv_heads, 1.0),
            rows(length, shape.num_kv_heads, 1.0),
        )
        for length in lengths
    ]


def dense_attention(sequence: Sequence, shape: Shape) -> Tensor:
    """float64 [L, H, D]: the formula, with a full mask."""
    length, group = len(sequence), shape.num_heads // shape.num_kv_heads
    key = sequence.key.double().repeat_interleave(group, 1)
    value = sequence.value.double().repeat_interleave(group, 1)
    distance = torch.arange(length).unsqueeze(1) - torch.arange(length)
    window = shape.sliding_window or length
    scores = torch.einsum("qhd,khd->hqk", sequence.query.double(), key) * shape.scale
    if shape.softcap is not None:
        scores = shape.softcap * torch.tanh(scores / shape.softcap)
    scores = scores.masked_fill((distance < 0) | (distance >= window), -math.inf)
    sinks = torch.full((shape.num_heads,), -math.inf) if shape.sinks is None else shape.sinks
    columns = sinks.double().view(-1, 1, 1).expand(-1, length, 1)
    weights = torch.cat([scores, columns], -1).softmax(-1)[..., :-1]
    return torch.einsum("hqk,khd->qhd", weights, value)


@dataclass
class PagedRun:
    """One layer's pages, NaN wherever nothing was written, and the outputs of every row computed so far."""

    backend: AttentionBackend
    shape: Shape
    sequences: list[Sequence]
    page_seed: int = 0
    poison: float = math.nan
    layer: KvLayer = field(init=False)
    tables: list[list[int]] = field(init=False)
    outputs: list[Tensor] = field(init=False)

    def __post_init__(self) -> None:
        counts = [-(-len(sequence) // BLOCK) for sequence in self.sequences]
        # Block 0 stays unused: it is what padded block tables point at.
        num_blocks = sum(counts) + 4
        pages = torch.randperm(num_blocks - 1, generator=torch.Generator().manual_seed(self.page_seed)) + 1
        self.tables = [part.tolist() for part in pages[: sum(counts)].split(counts)]
        self.layer = self.backend.allocate(self.shape.spec, num_blocks)
        self.layer.keys.fill_(self.poison)
        self.layer.values.fill_(self.poison)
        self.outputs = [torch.full_like(sequence.query, math.nan) for sequence in self.sequences]

    def step(self, chunks: list[Chunk], num_padding: int = 0) -> Tensor:
        """Write and attend the chunks together; the whole output, padding rows at its end."""
        picked = [(self.sequences[index], slice(start, start + length)) for index, start, length in chunks]
        query, key, value = (
            torch.cat([getattr(sequence, name)[rows] for sequence, rows in picked])
            for name in ("query", "key", "value")
        )
        query, key, value = (
            torch.cat([rows, rows[:1].repeat(num_padding, 1, 1)]) for rows in (query, key, value)
        )
        metadata = build_metadata(
            [start for _, start, _ in chunks],
            [length for _, _, length in chunks],
            [self.tables[index] for index, _, _ in chunks],
            len(query),
        )
        self.backend.write(self.layer, key, value, metadata)
        output = self.backend.attend(
            self.layer,
            query,
            metadata,
            scale=self.shape.scale,
            sliding_window=self.shape.sliding_window,
            softcap=self.shape.softcap,
            sinks=self.shape.sinks,
        )
        lengths = [length for _, _, length in chunks]
        parts = output[: sum(lengths)].split(lengths)
        for (index, start, length), part in zip(chunks, parts, strict=True):
            self.outputs[index][start : start + length] = part
        return output


def run_whole(
    backend: AttentionBackend, shape: Shape, sequences: list[Sequence], page_seed: int = 0
) -> list[Tensor]:
    """Every sequence as one chunk, all in one step."""
    run = PagedRun(backend, shape, sequences, page_seed)
    run.step([(index, 0, len(sequence)) for index, sequence in enumerate(sequences)])
    return run.outputs


def run_solo(backend: AttentionBackend, shape: Shape, sequences: list[Sequence]) -> list[Tensor]:
    """Every sequence in a pool and a step of its own."""
    return [run_whole(backend, shape, [sequence])[0] for sequence in sequences]


def run_chunked(
    backend: AttentionBackend, shape: Shape, sequences: list[Sequence], seed: int, longest: int = 40
) -> list[Tensor]:
    """Chunks of random lengths, of a random choice of the sequences each step, on shuffled pages."""
    generator = torch.Generator().manual_seed(seed)
    run = PagedRun(backend, shape, sequences, page_seed=seed)
    done = [0] * len(sequences)
    while open_ones := [index for index, sequence in enumerate(sequences) if done[index] < len(sequence)]:
        chunks = []
        for index in open_ones:
            wanted = int(torch.randint(0, longest + 1, (), generator=generator))
            length = min(wanted, len(sequences[index]) - done[index])
            if length:
                chunks.append((index, done[index], length))
                done[index] += length
        if chunks:
            run.step(chunks, num_padding=int(torch.randint(0, 4, (), generator=generator)))
    return run.outputs


def all_equal(left: list[Tensor], right: list[Tensor]) -> bool:
    """Bitwise, over every row of every sequence."""
    return all(torch.equal(a, b) for a, b in zip(left, right, strict=True))
