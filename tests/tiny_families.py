"""A tiny random model of every family that is served, each with the peculiarities of its real ones."""

from pathlib import Path
from typing import Any

import transformers

from tiny_models import SHAPE, WINDOW, save_module

SLIDING, FULL = "sliding_attention", "full_attention"
MIXED = {"layer_types": [SLIDING, FULL, SLIDING], "sliding_window": WINDOW}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 10_000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 128,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "truncate": False,
}
PLAIN_ROPE = {"rope_type": "default", "rope_theta": 10_000.0}
ORIGINAL_CONTEXT = 16
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10_000.0,
    "short_factor": [1.0] * 6,
    "long_factor": [1.0, 1.5, 2.0, 3.0, 5.0, 9.0],
    "original_max_position_embeddings": ORIGINAL_CONTEXT,
    "partial_rotary_factor": 0.75,
}
NOT_IN_GPT_NEOX = ("num_key_value_heads", "head_dim")
MOE = {"num_experts_per_tok": 2}

FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "Llama": ("Llama", {}),
    "Mistral": ("Mistral", {"sliding_window": WINDOW}),
    "Qwen2": ("Qwen2", MIXED | {"use_sliding_window": True}),
    "Qwen3": ("Qwen3", {"head_dim": 24}),
    "Gemma 2": (
        "Gemma2",
        MIXED | {"query_pre_attn_scalar": 16, "attn_logit_softcapping": 2.0, "head_dim": 32},
    ),
    "Gemma 3": (
        "Gemma3Text",
        MIXED | {"query_pre_attn_scalar": 16, "rope_parameters": {SLIDING: PLAIN_ROPE, FULL: YARN}},
    ),
    "Phi-3": (
        "Phi3",
        {"rope_parameters": PLAIN_ROPE | {"partial_rotary_factor": 0.5}, "sliding_window": WINDOW},
    ),
    "Phi-3 with longrope": (
        "Phi3",
        {"rope_parameters": LONGROPE, "original_max_position_embeddings": ORIGINAL_CONTEXT},
    ),
    "GPT-NeoX": ("GPTNeoX", {"rope_parameters": PLAIN_ROPE | {"partial_rotary_factor": 0.25}}),
    "GPT-NeoX in sequence": ("GPTNeoX", {"use_parallel_residual": False, "hidden_act": "gelu_new"}),
    "Mixtral": ("Mixtral", MOE | {"num_local_experts": 4}),
    "Qwen3-MoE": (
        "Qwen3Moe",
        MOE | {"num_experts": 6, "moe_intermediate_size": 40, "mlp_only_layers": [1], "norm_topk_prob": True},
    ),
    "gpt-oss": ("GptOss", MIXED | MOE | {"num_local_experts": 4, "rope_parameters": YARN}),
    "OLMo 2": ("Olmo2", {}),
    "OLMo 3": ("Olmo3", MIXED),
    "Granite": (
        "Granite",
        {
            "embedding_multiplier": 3.0,
            "attention_multiplier": 0.1,
            "residual_multiplier": 0.5,
            "logits_scaling": 2.0,
        },
    ),
    "SmolLM3": ("SmolLM3", {"no_rope_layers": [1, 0, 1]}),
    "Cohere 2": ("Cohere2", MIXED | {"logit_scale": 0.5}),
    "GLM 4": (
        "Glm4",
        {"rope_parameters": PLAIN_ROPE | {"partial_rotary_factor": 0.5}, "attention_bias": True},
    ),
}
"""Name -> transformers' prefix, and what its config has beyond SHAPE."""


def save_tiny(family: str, folder: Path, **changes: object) -> Path:
    """A checkpoint as save_pretrained writes it. `changes` go into its config."""
    prefix, own = FAMILIES[family]
    left_out = NOT_IN_GPT_NEOX if prefix == "GPTNeoX" else ()
    shape = {name: value for name, value in SHAPE.items() if name not in left_out}
    config = getattr(transformers, f"{prefix}Config")(**{**shape, **own, **changes})
    module = getattr(transformers, f"{prefix.removesuffix('Text')}ForCausalLM")(config)
    save_module(module, folder)
    return folder
