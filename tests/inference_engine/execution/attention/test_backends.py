"""Every backend against the formula, on pages full of NaN but for what was written."""

import math

import pytest
import torch

from attention_steps import PagedRun, Shape, dense_attention, random_sequences, run_chunked, run_whole
from inference_engine.execution.attention.backend import AttentionBackend, UnsupportedAttention
from inference_engine.execution.attention.metadata import build_metadata

SHAPES = [
    Shape(9, 3, 64),
    Shape(4, 4, 16),
    Shape(8, 1, 32, sliding_window=5),
    Shape(6, 2, 80, sliding_window=16),
    Shape(12, 2, 128),
    Shape(10, 2, 24, sliding_window=40),
    Shape(2, 1, 6, sliding_window=1),
    Shape(7, 1, 256),
    Shape(9, 3, 64, torch.bfloat16),
    Shape(10, 2, 40, torch.bfloat16, sliding_window=20),
    Shape(16, 2, 128, torch.bfloat16),
    Shape(5, 1, 18, torch.bfloat16, sliding_window=7),
    Shape(2, 2, 6, torch.bfloat16, sliding_window=33),
    Shape(6, 2, 16, softcap=3.0),
    Shape(8, 4, 256, torch.bfloat16, softcap=50.0, sliding_window=20),
    Shape(10, 2, 64, has_sinks=True),
    Shape(16, 2, 64, torch.bfloat16, has_sinks=True, sliding_window=7),
    Shape(6, 1, 30, softcap=0.5, has_sinks=True, sliding_window=40),
]
LENGTHS = [1, 15, 16, 17, 70, 33]


def tolerance(shape: Shape) -> float:
    return 1e-5 if shape.dtype == torch.float32 else 2.0**-8


def assert_close(outputs: list[torch.Tensor], shape: Shape, sequences: list) -> None:
    for output, sequence in zip(outputs, sequences, strict=True):
        wanted = dense_attention(sequence, shape)
        assert output.dtype == shape.dtype
        torch.testing.assert_close(output.double(), wanted, rtol=tolerance(shape), atol=tolerance(shape))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_whole_prompts_match_dense_softmax(backend: AttentionBackend, shape: Shape) -> None:
    sequences = random_sequences(shape, LENGTHS)
    assert_close(run_whole(backend, shape, sequences, page_seed=3), shape, sequences)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_chunks_mixed_with_decodes_match_dense_softmax(backend: AttentionBackend, shape: Shape) -> None:
    sequences = random_sequences(shape, LENGTHS, seed=1)
    assert_close(run_chunked(backend, shape, sequences, seed=5, longest=9), shape, sequences)


@pytest.mark.parametrize("seed", range(12))
def test_random_shapes_match_dense_softmax(backend: AttentionBackend, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)

    def pick(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=generator))

    num_kv_heads = pick(1, 4)
    window = pick(1, 60) if pick(0, 1) else None
    shape = Shape(num_kv_heads * pick(1, 6), num_kv_heads, 2 * pick(1, 70), sliding_window=window)
    sequences = random_sequences(shape, [pick(1, 90) for _ in range(pick(1, 6))], seed)
    assert_close(run_chunked(backend, shape, sequences, seed), shape, sequences)


@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
def test_unwritten_slots_never_leak(backend: AttentionBackend, poison: float) -> None:
    shape = Shape(6, 2, 48, sliding_window=19)
    sequences = random_sequences(shape, [1, 18, 31, 50])
    run = PagedRun(backend, shape, sequences, poison=poison)
    run.step([(index, 0, len(sequence)) for index, sequence in enumerate(sequences)])
    assert_close(run.outputs, shape, sequences)


def test_padding_rows_write_nothing_and_come_out_as_zeros(backend: AttentionBackend) -> None:
    shape = Shape(4, 2, 16)
    run = PagedRun(backend, shape, random_sequences(shape, [20]))
    output = run.step([(0, 0, 20)], num_padding=5)
    assert torch.equal(output[20:], torch.zeros(5, 4, 16))
    others = [block for block in range(run.layer.num_blocks) if block not in run.tables[0]]
    keys, values = backend.gather(run.layer, others)
    assert keys.isnan().all() and values.isnan().all()


def test_slices_of_a_fused_product_need_no_copy(backend: AttentionBackend) -> None:
    shape = Shape(6, 2, 16)
    sequence = random_sequences(shape, [21])[0]
    fused = torch.cat([sequence.query, sequence.key, sequence.value], 1)
    query, key, value = fused.split([6, 2, 2], 1)
    head_major = query.transpose(0, 1).contiguous().transpose(0, 1)
    layer = backend.allocate(shape.spec, 3)
    metadata = build_metadata([0], [21], [[2, 1]])
    backend.write(layer, key, value, metadata)
    for rows in (query, head_major):
        assert_close([backend.attend(layer, rows, metadata, scale=shape.scale)], shape, [sequence])


@pytest.mark.parametrize("head_dim", [16, 24])
def test_gather_returns_what_was_written_and_copy_block_copies_it(
    backend: AttentionBackend, head_dim: int
) -> None:
    shape = Shape(4, 2, head_dim, torch.bfloat16)
    run = PagedRun(backend, shape, random_sequences(shape, [40]))
    run.step([(0, 0, 40)])
    keys, values = backend.gather(run.layer, run.tables[0])
    assert torch.equal(keys[:40], run.sequences[0].key) and torch.equal(values[:40], run.sequences[0].value)
    assert keys[40:].isnan().all()
    backend.copy_block(run.layer, run.tables[0][1], 0)
    for original, copied in zip(
        backend.gather(run.layer, run.tables[0][1:2]), backend.gather(run.layer, [0]), strict=True
    ):
        assert torch.equal(original, copied)


@pytest.mark.parametrize("head_dim", [64, 24])
def test_bytes_per_block_is_what_a_block_takes(backend: AttentionBackend, head_dim: int) -> None:
    spec = Shape(4, 2, head_dim, torch.bfloat16).spec
    layer = backend.allocate(spec, 7)
    assert layer.keys.nbytes + layer.values.nbytes == 7 * backend.bytes_per_block(spec)


@pytest.mark.parametrize("sink", [1e4, -1e4, -math.inf])
def test_a_sink_of_any_size_is_no_accident(backend: AttentionBackend, sink: float) -> None:
    """Far above the scores it leaves nothing, far below it changes nothing."""
    layer, metadata = backend.allocate(Shape(2, 1, 16).spec, 2), build_metadata([0], [3], [[1]])
    query, key, value = torch.randn(3, 3, 2, 16).split([1, 1, 1])
    backend.write(layer, key[0, :, :1], value[0, :, :1], metadata)
    plain = backend.attend(layer, query[0], metadata, scale=0.3)
    sunk = backend.attend(layer, query[0], metadata, scale=0.3, sinks=torch.full((2,), sink))
    torch.testing.assert_close(sunk, plain if sink < 0 else torch.zeros(3, 2, 16))


def test_a_window_that_sees_nothing_is_refused(backend: AttentionBackend) -> None:
    layer = backend.allocate(Shape(4, 2, 16).spec, 2)
    with pytest.raises(ValueError, match="sliding window of 0"):
        backend.attend(
            layer, torch.zeros(1, 4, 16), build_metadata([0], [1], [[1]]), scale=1.0, sliding_window=0
        )


def test_a_dtype_no_backend_holds_is_refused(backend: AttentionBackend) -> None:
    with pytest.raises(UnsupportedAttention, match="float16"):
        backend.allocate(Shape(4, 2, 16, torch.float16).spec, 2)
