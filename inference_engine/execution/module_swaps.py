"""Replace the parts of a loaded transformers model by our packed and fused ones, by module type.

A type that is not listed keeps its own forward and only has its linear layers packed: slower, and correct.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from transformers.models.llama import modeling_llama
from transformers.models.mistral import modeling_mistral

from inference_engine.execution.fused_modules import FusedAttention, RotaryTable, fuse_mlp
from inference_engine.execution.linear import PackedLinear
from inference_engine.execution.native_decoder import NativeDecoder

Swap = Callable[[Any], nn.Module]

SWAPS: dict[type[nn.Module], Swap] = {
    modeling_llama.LlamaAttention: lambda module: FusedAttention(module, sliding_window=None),
    modeling_llama.LlamaMLP: fuse_mlp,
    modeling_mistral.MistralAttention: lambda module: FusedAttention(module, module.config.sliding_window),
    modeling_mistral.MistralMLP: fuse_mlp,
    nn.Linear: lambda module: PackedLinear(module.weight, module.bias),
}
ROTARY_TYPES = (modeling_llama.LlamaRotaryEmbedding, modeling_mistral.MistralRotaryEmbedding)


@torch.inference_mode()
def pack_model(model: Any, num_positions: int) -> None:
    """Swap in place, one module after the other, so that only one original is ever held beside its copy.

    A head tied to the embedding is packed from the shared weight; the embedding keeps its own.
    """
    _swap_children(model)
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, ROTARY_TYPES):
                setattr(module, name, RotaryTable(child, num_positions, model.dtype))
    model.native_decoder = NativeDecoder.of(getattr(model, "model", None))


def _swap_children(parent: nn.Module) -> None:
    for name, child in list(parent.named_children()):
        swap = SWAPS.get(type(child))
        if swap is not None:
            setattr(parent, name, swap(child))
        else:
            _swap_children(child)
