import pytest
import torch
import transformers

from inference_engine.execution.models.model_parts import decoder_of, final_norm_of, rowwise_parts_of_layers
from tiny_families import FAMILIES
from tiny_models import SHAPE


@pytest.mark.parametrize("family", ["Llama", "GPT-NeoX", "Gemma 2", "Cohere 2"])
def test_parts_are_found_whatever_they_are_called(family: str) -> None:
    prefix, own = FAMILIES[family]
    with torch.device("meta"):
        config = getattr(transformers, f"{prefix}Config")(**{**SHAPE, **own})
        module = getattr(transformers, f"{prefix}ForCausalLM")(config)
    decoder = decoder_of(module)
    assert len(decoder.layers) == 3
    assert final_norm_of(module) is list(decoder.children())[-2]
    names = [type(part).__name__ for part in rowwise_parts_of_layers(module)]
    assert len(names) % 3 == 0 and not [name for name in names if "Attention" in name]
    assert [name for name in names if "MLP" in name]
