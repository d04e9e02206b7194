import torch
from transformers import LlamaConfig

from inference_engine.execution.models.layer_specs import layer_specs


def test_every_layer_keeps_its_kv_heads() -> None:
    config = LlamaConfig(hidden_size=64, num_attention_heads=8, num_key_value_heads=2, num_hidden_layers=3)
    specs = layer_specs(config, torch.bfloat16)
    assert len(specs) == 3
    assert {(spec.num_kv_heads, spec.head_dim, spec.dtype) for spec in specs} == {(2, 8, torch.bfloat16)}
