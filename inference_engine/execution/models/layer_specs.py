"""What each layer of a model keeps in the KV pool."""

from typing import Any

import torch

from inference_engine.execution.attention.backend import LayerSpec


def layer_specs(config: Any, dtype: torch.dtype) -> list[LayerSpec]:
    """One spec per layer; config is the module's transformers config."""
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    num_kv_heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    return [LayerSpec(num_kv_heads, head_dim, dtype)] * config.num_hidden_layers
