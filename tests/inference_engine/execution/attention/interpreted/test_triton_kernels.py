"""The Triton kernels in Triton's interpreter, on pages full of NaN but for what was written."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from attention_steps import (
    PagedRun,
    Shape,
    all_equal,
    dense_attention,
    random_sequences,
    run_chunked,
    run_solo,
    run_whole,
)
from inference_engine.execution.attention.backend import LayerSpec, UnsupportedAttention
from inference_engine.execution.attention.metadata import build_metadata
from inference_engine.execution.attention.reference import ReferenceBackend
from inference_engine.execution.attention.triton import TritonBackend


def triton_backend(*, batch_invariant: bool = True) -> TritonBackend:
    return TritonBackend("cpu", batch_invariant=batch_invariant)


SHAPES = [
    Shape(9, 3, 64),
    Shape(4, 4, 16, torch.bfloat16),
    Shape(8, 1, 40, sliding_window=5),
    Shape(6, 2, 24, torch.bfloat16, sliding_window=33),
    Shape(7, 1, 256, softcap=3.0),
    Shape(8, 2, 32, torch.bfloat16, has_sinks=True, sliding_window=20),
    Shape(6, 2, 18, softcap=5.0, has_sinks=True),
]
LENGTHS = [1, 17, 45]


def assert_close(outputs: list[torch.Tensor], wanted: list[torch.Tensor], shape: Shape) -> None:
    tolerance = 2e-5 if shape.dtype == torch.float32 else 2.0**-7
    for output, expected in zip(outputs, wanted, strict=True):
        assert output.dtype == shape.dtype
        torch.testing.assert_close(output.double(), expected.double(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("is_split", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_prefills_and_decodes_match_the_reference(shape: Shape, is_split: bool) -> None:
    backend = triton_backend(batch_invariant=not is_split)
    sequences = random_sequences(shape, LENGTHS)
    wanted = run_whole(ReferenceBackend(), shape, sequences)
    assert_close(wanted, [dense_attention(sequence, shape) for sequence in sequences], shape)
    assert_close(run_chunked(backend, shape, sequences, seed=5, longest=30), wanted, shape)
    assert_close(run_chunked(backend, shape, sequences[:2], seed=6, longest=1), wanted[:2], shape)


@pytest.mark.parametrize("seed", range(3))
def test_random_shapes_match_the_reference(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)

    def pick(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=generator))

    num_kv_heads = pick(1, 3)
    window = pick(1, 60) if pick(0, 1) else None
    shape = Shape(num_kv_heads * pick(1, 6), num_kv_heads, 2 * pick(1, 40), sliding_window=window)
    sequences = random_sequences(shape, [pick(1, 50) for _ in range(pick(1, 3))], seed)
    wanted = run_whole(ReferenceBackend(), shape, sequences)
    assert_close(run_chunked(triton_backend(), shape, sequences, seed), wanted, shape)


@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[5]], ids=str)
def test_without_splits_no_bit_depends_on_batch_chunks_or_pages(shape: Shape) -> None:
    backend = triton_backend()
    sequences = random_sequences(shape, [35, 1, 17])
    solo = run_solo(backend, shape, sequences)
    assert all_equal(solo, run_whole(backend, shape, sequences, page_seed=4))
    assert all_equal(solo, run_chunked(backend, shape, sequences, seed=2, longest=20))
    assert all_equal(solo[1:], run_chunked(backend, shape, sequences[1:], seed=3, longest=1))


def test_splits_are_made_for_few_long_contexts_only_where_they_may() -> None:
    few = build_metadata([600], [1], [list(range(38))])
    many = build_metadata([600] * 64, [1] * 64, [list(range(38))] * 64)
    short = build_metadata([6], [1], [[0]])
    splitting, invariant = triton_backend(batch_invariant=False), triton_backend()
    assert [splitting.num_splits(each, num_kv_heads=2) for each in (few, many, short)] == [8, 1, 1]
    assert invariant.num_splits(few, num_kv_heads=2) == 1
    assert (splitting.batch_invariant, invariant.batch_invariant) == (False, True)


def test_padding_rows_write_nothing_and_come_out_as_zeros() -> None:
    shape, backend = Shape(4, 2, 16), triton_backend(batch_invariant=False)
    run = PagedRun(backend, shape, random_sequences(shape, [20]))
    output = run.step([(0, 0, 20)], num_padding=5)
    assert torch.equal(output[20:], torch.zeros(5, 4, 16))
    others = [block for block in range(run.layer.num_blocks) if block not in run.tables[0]]
    assert all(kv.isnan().all() for kv in backend.gather(run.layer, others))


def test_blocks_are_gathered_copied_and_counted() -> None:
    shape, backend = Shape(4, 2, 24, torch.bfloat16), triton_backend()
    run = PagedRun(backend, shape, random_sequences(shape, [40]))
    run.step([(0, 0, 40)])
    keys, values = backend.gather(run.layer, run.tables[0])
    assert torch.equal(keys[:40], run.sequences[0].key) and torch.equal(values[:40], run.sequences[0].value)
    assert keys[40:].isnan().all()
    backend.copy_block(run.layer, run.tables[0][1], 0)
    copied, original = (backend.gather(run.layer, [block]) for block in (0, run.tables[0][1]))
    assert all(torch.equal(a, b) for a, b in zip(copied, original, strict=True))
    size = run.layer.keys.nbytes + run.layer.values.nbytes
    assert size == run.layer.num_blocks * backend.bytes_per_block(shape.spec)


def test_what_the_kernels_can_not_do_is_refused() -> None:
    backend = triton_backend()
    with pytest.raises(UnsupportedAttention, match="at most 256, not 320"):
        backend.allocate(LayerSpec(2, 320, torch.float32), 2)
    layer, metadata = backend.allocate(Shape(4, 2, 16).spec, 2), build_metadata([0], [3], [[1]])
    good = torch.zeros(3, 4, 16)
    bad: list[Any] = [good.bfloat16(), good[..., :8], good[:, :3], torch.zeros(3, 4, 32)[..., ::2]]
    for query in bad:
        with pytest.raises(ValueError):
            backend.attend(layer, query, metadata, scale=1.0)


def test_a_split_that_depends_on_the_batch_is_seen() -> None:
    """The comparison above must be able to fail: with splits a row's bits do depend on its batch."""
    shape = replace(SHAPES[0], num_kv_heads=1, num_heads=2)
    backend = triton_backend(batch_invariant=False)
    sequences = random_sequences(shape, [130, *[4] * 8])
    run_alone, run_together = (PagedRun(backend, shape, part) for part in (sequences[:1], sequences))
    for run in (run_alone, run_together):
        run.step([(index, 0, len(sequence) - 1) for index, sequence in enumerate(run.sequences)])
        run.step([(index, len(sequence) - 1, 1) for index, sequence in enumerate(run.sequences)])
    assert not torch.equal(run_alone.outputs[0][-1], run_together.outputs[0][-1])
    torch.testing.assert_close(run_alone.outputs[0], run_together.outputs[0])
