"""All layers of a Llama or Mistral as one call into C++ (kernels/decoder.h), if all parts are native.

Its residual stream is fp32, and what lies between two products is rounded once; otherwise it computes what
the Python modules compute, which serve every model that this one doesn't know.
"""

from typing import Any

import torch
from torch import Tensor, nn
from transformers.models.llama import modeling_llama
from transformers.models.mistral import modeling_mistral

from inference_engine.execution.attention.backend import AttentionBackend
from inference_engine.execution.attention.cpu import CpuBackend
from inference_engine.execution.forward.fused_modules import FusedAttention, GatedMlp
from inference_engine.execution.forward.packed_step import PackedStep
from inference_engine.execution.forward.position_tables import RotaryTable
from inference_engine.execution.products.native_products import PANEL

LAYERS = {
    modeling_llama.LlamaModel: (modeling_llama.LlamaDecoderLayer, modeling_llama.LlamaRMSNorm),
    modeling_mistral.MistralModel: (modeling_mistral.MistralDecoderLayer, modeling_mistral.MistralRMSNorm),
}
"""Model -> the types of its layers and norms, whose forward this one stands for."""


class NativeDecoder:
    """Holds the tensors of a packed model in the order in which the kernel takes them."""

    def __init__(self, model: Any) -> None:
        attentions = [layer.self_attn for layer in model.layers]
        self._embedding: nn.Embedding = model.embed_tokens
        self._weights = [weight for layer in model.layers for weight in _weights(layer)]
        self._final_norm = model.norm.weight.detach().float()
        self._eps: float = model.norm.variance_epsilon
        self._tables = [
            table[:, 0].contiguous() for table in (model.rotary_emb.cos, model.rotary_emb.signed_sin)
        ]
        self._scale: float = attentions[0].scaling
        self._num_heads: int = attentions[0].num_heads
        self._inner_width: int = model.layers[0].mlp.inner_width
        self._windows: list[int] = [attention.sliding_window or 0 for attention in attentions]

    @classmethod
    def of(cls, model: Any) -> "NativeDecoder | None":
        """None for a model with a part that the kernel can't do."""
        types = LAYERS.get(type(model))
        if types is None or not isinstance(model.rotary_emb, RotaryTable) or type(model.norm) is not types[1]:
            return None
        return cls(model) if all(_is_native(layer, *types) for layer in model.layers) else None

    def runs_on(self, backend: AttentionBackend) -> bool:
        return isinstance(backend, CpuBackend)

    def __call__(self, token_ids: Tensor, step: PackedStep) -> Tensor:
        """Last hidden states [T, hidden] of ids int64 [T], after the final norm."""
        metadata = step.metadata
        step.layer_calls += range(len(self._windows))
        states: Tensor = torch.ops.octavo.decode_layers(
            self._embedding(token_ids),
            self._weights,
            self._final_norm,
            self._eps,
            [layer.keys for layer in step.kv_layers],
            [layer.values for layer in step.kv_layers],
            metadata.positions,
            metadata.slot_mapping,
            metadata.sequence_of_row,
            metadata.block_table,
            *self._tables,
            self._scale,
            self._windows,
            self._num_heads,
            self._inner_width,
        )
        return states


def _weights(layer: Any) -> list[Tensor]:
    return [
        layer.input_layernorm.weight.detach().float(),
        layer.self_attn.qkv_proj.weight,
        layer.self_attn.o_proj.weight,
        layer.post_attention_layernorm.weight.detach().float(),
        layer.mlp.gate_up_proj.weight,
        layer.mlp.down_proj.weight,
    ]


def _is_native(layer: Any, layer_type: type, norm_type: type) -> bool:
    kind = type(layer)
    if kind is not layer_type or not isinstance(layer.self_attn, FusedAttention):
        return False
    norms = (layer.input_layernorm, layer.post_attention_layernorm)
    if not isinstance(layer.mlp, GatedMlp) or any(type(norm) is not norm_type for norm in norms):
        return False
    linears = (layer.self_attn.qkv_proj, layer.self_attn.o_proj, layer.mlp.gate_up_proj, layer.mlp.down_proj)
    return all(
        linear.is_native and linear.bias is None and linear.out_features % PANEL == 0 for linear in linears
    )
