"""What the C++ kernel refuses rather than reading or writing out of bounds."""

from dataclasses import replace

import pytest
import torch

from attention_steps import Shape
from inference_engine.execution.attention.backend import AttentionBackend, LayerSpec, UnsupportedAttention
from inference_engine.execution.attention.metadata import build_metadata

SHAPE = Shape(4, 2, 16)
METADATA = build_metadata([0], [3], [[1]])


@pytest.mark.parametrize("head_dim", [15, 514])
def test_head_dimensions_the_kernel_can_not_do_are_refused(
    cpu_backend: AttentionBackend, head_dim: int
) -> None:
    with pytest.raises(UnsupportedAttention, match=f"not {head_dim}"):
        cpu_backend.allocate(LayerSpec(2, head_dim, torch.float32), 2)


def test_a_block_outside_the_pool_is_an_error(cpu_backend: AttentionBackend) -> None:
    layer = cpu_backend.allocate(SHAPE.spec, 2)
    outside = build_metadata([0], [3], [[2]])
    with pytest.raises(RuntimeError, match="block 2 of 2"):
        cpu_backend.attend(layer, torch.zeros(3, 4, 16), outside, scale=1.0)
    with pytest.raises(RuntimeError, match="slot 32"):
        cpu_backend.write(layer, torch.zeros(3, 2, 16), torch.zeros(3, 2, 16), outside)


def test_a_position_outside_the_block_table_is_an_error(cpu_backend: AttentionBackend) -> None:
    layer = cpu_backend.allocate(SHAPE.spec, 2)
    broken = replace(METADATA, positions=METADATA.positions + 16)
    with pytest.raises(RuntimeError, match="outside the block table"):
        cpu_backend.attend(layer, torch.zeros(3, 4, 16), broken, scale=1.0)


@pytest.mark.parametrize(
    "query",
    [
        torch.zeros(3, 4, 16, dtype=torch.bfloat16),
        torch.zeros(3, 4, 8),
        torch.zeros(3, 3, 16),
        torch.zeros(2, 4, 16),
        torch.zeros(3, 4, 32)[..., ::2],
    ],
    ids=["dtype", "head_dim", "heads", "rows", "stride"],
)
def test_queries_of_another_kind_are_an_error(cpu_backend: AttentionBackend, query: torch.Tensor) -> None:
    layer = cpu_backend.allocate(SHAPE.spec, 2)
    with pytest.raises(RuntimeError):
        cpu_backend.attend(layer, query, METADATA, scale=1.0)


def test_a_nan_in_one_sequence_stays_in_it(cpu_backend: AttentionBackend) -> None:
    layer = cpu_backend.allocate(SHAPE.spec, 3)
    metadata = build_metadata([0, 0], [3, 3], [[1], [2]])
    key = torch.randn(6, 2, 16)
    key[1] = torch.nan
    cpu_backend.write(layer, key, torch.randn(6, 2, 16), metadata)
    output = cpu_backend.attend(layer, torch.randn(6, 4, 16), metadata, scale=1.0)
    assert output[:1].isfinite().all() and output[1:3].isnan().all() and output[3:].isfinite().all()
