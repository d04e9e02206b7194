import pytest
import torch
from torch import Tensor
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import (
    LlamaAttention,
    LlamaMLP,
    LlamaRotaryEmbedding,
    apply_rotary_pos_emb,
)

from inference_engine.execution.attention.metadata import build_metadata
from inference_engine.execution.attention.reference import ReferenceBackend
from inference_engine.execution.forward.fused_modules import FusedAttention, FusedMlp, rotate
from inference_engine.execution.forward.packed_step import PackedStep
from inference_engine.execution.forward.position_tables import RotaryTable
from inference_engine.execution.models.layer_specs import layer_specs

CONFIG = LlamaConfig(
    hidden_size=48,
    intermediate_size=72,
    num_attention_heads=6,
    num_key_value_heads=2,
    head_dim=8,
    num_hidden_layers=1,
)
DTYPES = [torch.float32, torch.bfloat16]


def rows(count: int, width: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(count, width, generator=torch.Generator().manual_seed(5)).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rotary_table_holds_the_bits_that_transformers_computes(dtype: torch.dtype) -> None:
    rotary = LlamaRotaryEmbedding(CONFIG)
    positions = torch.tensor([[0, 1, 39, 7, 7]])
    heads = rows(5, 3 * 8, dtype).view(5, 3, 8)
    cos, sin = rotary(heads, positions)
    expected, _ = apply_rotary_pos_emb(heads.transpose(0, 1)[None], heads.transpose(0, 1)[None], cos, sin)
    table = RotaryTable(rotary, 40, dtype)
    assert torch.equal(rotate(heads, *table(heads, positions)), expected[0].transpose(0, 1))


def test_fused_mlp_is_the_plain_one() -> None:
    plain = LlamaMLP(CONFIG).requires_grad_(False)
    x = rows(9, 48)[None]
    torch.testing.assert_close(FusedMlp(plain)(x), plain(x), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_fused_mlp_rows_do_not_depend_on_their_number(dtype: torch.dtype) -> None:
    """72 is no multiple of a vector: a contiguous activation would round its last elements otherwise."""
    fused = FusedMlp(LlamaMLP(CONFIG).requires_grad_(False).to(dtype))
    x = rows(33, 48, dtype)
    whole = fused(x)
    for count in range(2, 33):
        assert torch.equal(fused(x[-count:]), whole[-count:])


def test_fused_attention_is_the_plain_one() -> None:
    config = LlamaConfig(**CONFIG.to_dict())
    config._attn_implementation = "eager"
    plain = LlamaAttention(config, layer_idx=0).requires_grad_(False)
    rotary = LlamaRotaryEmbedding(config)
    x, positions = rows(20, 48)[None], torch.arange(20)[None]
    mask = torch.full((20, 20), -torch.inf).triu(1)[None, None]
    expected, _ = plain(x, position_embeddings=rotary(x, positions), attention_mask=mask)

    backend = ReferenceBackend()
    layers = [backend.allocate(spec, 2) for spec in layer_specs(config, torch.float32)]
    step = PackedStep(backend, layers, build_metadata([0], [20], [[1, 0]]))
    fused = FusedAttention(plain, sliding_window=None)
    output, _ = fused(x, RotaryTable(rotary, 20, torch.float32)(x, positions), packed_step=step)
    torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-4)
    assert step.layer_calls == [0]
