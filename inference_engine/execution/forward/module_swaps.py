"""Replace the parts of a loaded transformers model by our packed and fused ones, by module type.

Types are told by name, so that no family's code is imported for another's sake. One that is not listed keeps
its own forward and only has its linear layers packed: slower, and correct.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from inference_engine.execution.forward.fused_modules import (
    FusedAttention,
    PlainMlp,
    fuse_mlp,
    fuse_stacked_mlp,
)
from inference_engine.execution.forward.native_decoder import NativeDecoder
from inference_engine.execution.forward.position_tables import PositionTable, RotaryTable, rotary_modules
from inference_engine.execution.products.experts import pack_gpt_oss_mixture, pack_mixture
from inference_engine.execution.products.linear import PackedLinear
from inference_engine.execution.products.quantization import quantise_linears

Swap = Callable[[Any], nn.Module]


def _fuse_windowed_attention(module: Any) -> nn.Module:
    return FusedAttention(module, module.config.sliding_window)


SWAPS: dict[str, Swap] = {
    "LlamaAttention": lambda module: FusedAttention(module, sliding_window=None),
    "GraniteAttention": lambda module: FusedAttention(module, sliding_window=None),
    "MistralAttention": _fuse_windowed_attention,
    "MixtralAttention": _fuse_windowed_attention,
    "Qwen2Attention": lambda module: FusedAttention(module, module.sliding_window),
    "MixtralSparseMoeBlock": pack_mixture,
    "Qwen3MoeSparseMoeBlock": pack_mixture,
    "GptOssMLP": pack_gpt_oss_mixture,
    "GPTNeoXMLP": PlainMlp,
    "Phi3MLP": fuse_stacked_mlp,
    "Glm4MLP": fuse_stacked_mlp,
    "Linear": lambda module: PackedLinear(module.weight, module.bias),
} | dict.fromkeys(
    [
        f"{family}MLP"
        for family in (
            "Llama", "Mistral", "Qwen2", "Qwen3", "Qwen3Moe", "Gemma2", "Gemma3", "Granite", "SmolLM3",
            "Cohere2", "Olmo2", "Olmo3",
        )
    ],
    fuse_mlp,
)  # fmt: skip


@torch.inference_mode()
def pack_model(model: Any, num_positions: int, *, in_int8: bool = False) -> None:
    """Swap in place, one module after the other, so that only one original is ever held beside its copy.

    A head tied to the embedding is packed from the shared weight; the embedding keeps its own.
    """
    _swap_children(model)
    if in_int8:
        quantise_linears(model)
    is_fused = any(isinstance(module, FusedAttention) for module in model.modules())
    table_type = RotaryTable if is_fused else PositionTable
    for rotary in list(rotary_modules(model)):
        parent, name = _place_of(model, rotary)
        setattr(parent, name, table_type(rotary, num_positions, model.dtype))
    model.native_decoder = NativeDecoder.of(getattr(model, "model", None))


def _swap_children(parent: nn.Module) -> None:
    for name, child in list(parent.named_children()):
        swap = SWAPS.get(type(child).__name__)
        if swap is not None:
            setattr(parent, name, swap(child))
        else:
            _swap_children(child)


def _place_of(model: nn.Module, wanted: nn.Module) -> tuple[nn.Module, str]:
    """Which module holds another, under which name."""
    path = next(path for path, module in model.named_modules() if module is wanted)
    parent, _, name = path.rpartition(".")
    return model.get_submodule(parent), name
