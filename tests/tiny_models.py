"""Tiny random models on disk: small enough for every test, wild enough for a test to see something."""

from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

VOCABULARY = 211
WINDOW = 20
"""Longer than a block, and no multiple of one."""
SINK_SCALE = 3.0
"""So that attention sinks matter to some heads and not to others."""
SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "initializer_range": 0.15,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}


def save_tiny_llama(folder: Path, **changes: object) -> Path:
    """A Llama with full attention. `changes` go into its config."""
    return save_module(LlamaForCausalLM(LlamaConfig(**{**SHAPE, **changes})), folder)


def save_tiny_mistral(folder: Path, **changes: object) -> Path:
    """A Mistral whose every layer sees WINDOW positions."""
    config = MistralConfig(**{**SHAPE, "sliding_window": WINDOW, **changes})
    return save_module(MistralForCausalLM(config), folder)


def save_module(module: torch.nn.Module, folder: Path) -> Path:
    """Random weights, the same every time, saved in fp32."""
    generator = torch.Generator().manual_seed(1)
    scale = SHAPE["initializer_range"]
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            is_norm = name.endswith("norm.weight")
            spread = SINK_SCALE if name.endswith("sinks") else scale
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * spread + is_norm)
    module.save_pretrained(folder)
    return folder
