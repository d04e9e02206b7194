"""Models of well-known shapes with random weights, made where they run."""

from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig


@dataclass(frozen=True)
class ModelShape:
    name: str
    hidden: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int

    def config(self, context_length: int) -> LlamaConfig:
        return LlamaConfig(
            hidden_size=self.hidden,
            intermediate_size=self.inner,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.kv_heads,
            head_dim=self.head_dim,
            vocab_size=self.vocabulary,
            max_position_embeddings=context_length,
            initializer_range=self.hidden**-0.5,
            bos_token_id=None,
            eos_token_id=None,
            pad_token_id=None,
        )

    @property
    def matrix_weights(self) -> int:
        """In all matrix products of one row: layers and head."""
        attention = self.hidden * self.head_dim * 2 * (self.heads + self.kv_heads)
        return self.layers * (attention + 3 * self.hidden * self.inner) + self.hidden * self.vocabulary

    @property
    def kv_bytes_per_token(self) -> int:
        """In bf16."""
        return 2 * 2 * self.layers * self.kv_heads * self.head_dim

    @property
    def bytes(self) -> int:
        """Of all weights in bf16."""
        return 2 * (self.matrix_weights + self.hidden * self.vocabulary)


ONE_BILLION = ModelShape("1B", 2048, 8192, 16, 32, 8, 64, 128_256)
SEVEN_BILLION = ModelShape("7B", 4096, 14_336, 32, 32, 8, 128, 32_000)
TINY = ModelShape("tiny", 32, 48, 2, 4, 2, 16, 97)


def make_model(shape: ModelShape, device: torch.device, context_length: int) -> Any:
    """A transformers module in bf16 with its own attention."""
    torch.manual_seed(0)
    with torch.device(device):
        module = AutoModelForCausalLM.from_config(
            shape.config(context_length), dtype=torch.bfloat16, attn_implementation="sdpa"
        )
    return module.to(device).eval().requires_grad_(False)
