from pathlib import Path

import torch
from torch import nn
from transformers import LlamaForCausalLM, MistralForCausalLM

from inference_engine.execution.forward.fused_modules import FusedAttention, FusedMlp
from inference_engine.execution.forward.module_swaps import pack_model
from inference_engine.execution.forward.position_tables import RotaryTable
from inference_engine.execution.products.linear import PackedLinear
from tiny_models import WINDOW, save_tiny_llama, save_tiny_mistral


def test_every_product_of_a_packed_model_is_packed_and_fused(tmp_path: Path) -> None:
    model = LlamaForCausalLM.from_pretrained(save_tiny_llama(tmp_path))
    pack_model(model, 64)
    assert not [module for module in model.modules() if isinstance(module, nn.Linear)]
    for layer in model.model.layers:
        assert isinstance(layer.self_attn, FusedAttention)
        assert isinstance(layer.mlp, FusedMlp)
    assert isinstance(model.model.rotary_emb, RotaryTable)
    assert model.model.rotary_emb.cos.shape == (64, 1, 16)


def test_a_tied_head_is_packed_and_the_embedding_keeps_its_weight(tmp_path: Path) -> None:
    model = LlamaForCausalLM.from_pretrained(save_tiny_llama(tmp_path, tie_word_embeddings=True))
    weight = model.model.embed_tokens.weight.detach().clone()
    pack_model(model, 64)
    assert isinstance(model.lm_head, PackedLinear)
    assert torch.equal(model.model.embed_tokens.weight, weight)
    states = torch.randn(4, 64)
    torch.testing.assert_close(model.lm_head(states), states @ weight.T, atol=1e-5, rtol=1e-4)


def test_only_a_model_that_masks_by_window_gets_one(tmp_path: Path) -> None:
    mistral = MistralForCausalLM.from_pretrained(save_tiny_mistral(tmp_path / "mistral"))
    llama = LlamaForCausalLM.from_pretrained(save_tiny_llama(tmp_path / "llama", sliding_window=WINDOW))
    for model in (mistral, llama):
        pack_model(model, 64)
    assert [layer.self_attn.sliding_window for layer in mistral.model.layers] == [WINDOW] * 3
    assert [layer.self_attn.sliding_window for layer in llama.model.layers] == [None] * 3


def test_an_unknown_kind_of_layer_keeps_its_forward_and_gets_packed_products() -> None:
    class Unknown(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(32, 16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x) * 2

    class Whole(nn.Module):
        dtype = torch.float32

        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([Unknown()])

    whole = Whole()
    x = torch.randn(3, 32)
    expected = whole.layers[0](x)
    pack_model(whole, 8)
    assert isinstance(whole.layers[0], Unknown)
    assert isinstance(whole.layers[0].inner, PackedLinear)
    torch.testing.assert_close(whole.layers[0](x), expected)
