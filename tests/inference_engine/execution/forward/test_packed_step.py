import pytest
import torch
from transformers import AttentionInterface

from inference_engine.execution.attention.backend import LayerSpec
from inference_engine.execution.attention.metadata import build_metadata
from inference_engine.execution.attention.reference import ReferenceBackend
from inference_engine.execution.forward.packed_step import ATTENTION_NAME, PackedStep, paged_attention


def step_of(num_rows: int) -> PackedStep:
    backend = ReferenceBackend()
    layers = [backend.allocate(LayerSpec(2, 8, torch.float32), 3) for _ in range(2)]
    return PackedStep(backend, layers, build_metadata([0], [num_rows], [[2, 1]]))


def tensors(num_rows: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(num_rows, heads, 8, generator=generator) for heads in (4, 2, 2))  # type: ignore[return-value]


def test_attend_stores_before_it_reads_and_notes_the_layer() -> None:
    query, key, value = tensors(1)
    step = step_of(1)
    output = step.attend(1, query, key, value, scale=0.3)
    torch.testing.assert_close(output, value.repeat_interleave(2, dim=1))
    assert step.layer_calls == [1]
    assert torch.equal(step.backend.gather(step.kv_layers[1], [2])[1][0], value[0])
    assert not step.backend.gather(step.kv_layers[0], [2])[1].any()


def test_transformers_finds_the_hook_and_it_moves_no_row() -> None:
    query, key, value = tensors(20)
    expected = step_of(20).attend(0, query, key, value, scale=0.3, sliding_window=5)
    module = torch.nn.Module()
    module.layer_idx = 0  # type: ignore[assignment]
    hook = AttentionInterface()[ATTENTION_NAME]
    assert hook is paged_attention
    shaped = [each.transpose(0, 1)[None] for each in (query, key, value)]
    output, weights = hook(module, *shaped, None, packed_step=step_of(20), scaling=0.3, sliding_window=5)
    assert torch.equal(output[0], expected)
    assert weights is None


def test_a_mask_is_not_silently_ignored() -> None:
    query, key, value = tensors(4)
    with pytest.raises(AssertionError, match="mask"):
        paged_attention(
            torch.nn.Module(), query, key, value, torch.ones(4, 4), packed_step=step_of(4), scaling=1.0
        )
