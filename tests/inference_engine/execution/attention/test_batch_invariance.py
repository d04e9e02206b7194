"""A row's output is bitwise the same alone, in a batch, in any chunking and on any pages."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from attention_steps import PagedRun, Shape, all_equal, random_sequences, run_chunked, run_solo, run_whole
from inference_engine.execution.attention.backend import AttentionBackend, AttentionRule, KvLayer
from inference_engine.execution.attention.cpu import CpuBackend
from inference_engine.execution.attention.metadata import AttentionMetadata
from inference_engine.execution.attention.reference import ReferenceBackend

LENGTHS = [130, 1, 16, 47, 90, 33]
SHAPES = [
    Shape(9, 3, 64),
    Shape(9, 3, 64, torch.bfloat16),
    Shape(6, 2, 40, sliding_window=37),
    Shape(10, 2, 128, torch.bfloat16, sliding_window=16),
    Shape(6, 2, 32, softcap=5.0, has_sinks=True, sliding_window=21),
    Shape(6, 2, 48, torch.bfloat16, softcap=5.0, has_sinks=True),
]


def differs_anywhere(backend: AttentionBackend, shape: Shape) -> bool:
    """Whether any way to run the sequences gives another bit than running each alone."""
    sequences = random_sequences(shape, LENGTHS)
    solo = run_solo(backend, shape, sequences)
    ways = [run_whole(backend, shape, sequences, page_seed) for page_seed in range(2)]
    ways += [run_chunked(backend, shape, sequences, seed) for seed in range(3)]
    ways.append(run_chunked(backend, shape, sequences, seed=9, longest=1))
    return not all(all_equal(solo, way) for way in ways)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_solo_batched_chunked_and_shuffled_are_bitwise_equal(
    invariant_backend: AttentionBackend, shape: Shape
) -> None:
    assert invariant_backend.batch_invariant
    assert not differs_anywhere(invariant_backend, shape)


def test_the_number_of_threads_changes_no_bit(invariant_backend: AttentionBackend) -> None:
    shape = Shape(9, 3, 64)
    sequences = random_sequences(shape, LENGTHS)
    before = torch.get_num_threads()
    outputs = []
    try:
        for num_threads in (1, 2, 3):
            torch.set_num_threads(num_threads)
            outputs.append(run_whole(invariant_backend, shape, sequences))
    finally:
        torch.set_num_threads(before)
    assert all_equal(outputs[0], outputs[1]) and all_equal(outputs[0], outputs[2])


@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[1], SHAPES[5]], ids=str)
def test_a_long_row_alone_is_spread_over_threads_without_another_bit(shape: Shape, compiler: Path) -> None:
    backend = CpuBackend()
    sequences = random_sequences(shape, [2100, 1030])
    whole = run_whole(backend, shape, sequences)
    run = PagedRun(backend, shape, sequences, page_seed=3)
    run.step([(0, 0, 2097), (1, 0, 1029)])
    run.step([(0, 2097, 1)])
    run.step([(0, 2098, 2)], num_padding=1)
    run.step([(1, 1029, 1)])
    assert all_equal(whole, run.outputs)


class SplitByBatch(ReferenceBackend):
    """The mistake that this file guards against: fewer, longer splits when the batch is large."""

    def _attend(
        self, layer: KvLayer, query: Tensor, metadata: AttentionMetadata, rule: AttentionRule
    ) -> Tensor:
        self.split_tokens = 16 if metadata.num_sequences == 1 else 32
        return super()._attend(layer, query, metadata, rule)


def test_a_split_chosen_by_the_batch_is_caught() -> None:
    assert differs_anywhere(SplitByBatch(), SHAPES[0])
