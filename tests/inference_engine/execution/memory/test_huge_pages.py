"""Memory for weights and KV blocks."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from inference_engine.execution.attention.build import load_kernel


@pytest.fixture(autouse=True)
def _kernel(compiler: Path) -> None:
    load_kernel()


def allocate(num_bytes: int, fill: int) -> Tensor:
    piece: Tensor = torch.ops.octavo.allocate_huge(num_bytes)
    return piece.fill_(fill)


def test_pieces_are_of_the_size_asked_for_aligned_and_apart() -> None:
    sizes = [1, 4096, 4097, 1 << 20, 20 << 20, 40 << 20, 3, 15 << 20, 15 << 20]
    pieces = [allocate(size, index) for index, size in enumerate(sizes)]
    for index, (piece, size) in enumerate(zip(pieces, sizes, strict=True)):
        assert piece.shape == (size,) and piece.data_ptr() % 4096 == 0
        assert bool((piece == index).all())


def test_a_piece_outlives_those_it_shares_a_chunk_with() -> None:
    kept, dropped = allocate(5000, 7), allocate(5000, 8)
    del dropped
    for index in range(100):
        allocate(1 << 20, index)
    assert bool((kept == 7).all())


def test_no_bytes_are_an_error() -> None:
    with pytest.raises(RuntimeError, match="nothing to allocate"):
        torch.ops.octavo.allocate_huge(0)
