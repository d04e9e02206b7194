import json
from pathlib import Path

import pytest
import torch

from inference_engine.execution.attention.reference import ReferenceBackend
from inference_engine.execution.models.families import UnsupportedModel
from inference_engine.execution.models.model_loading import load_model
from tiny_models import save_tiny_llama, save_tiny_mistral


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_is_loaded_in_the_type_asked_for(dtype: torch.dtype, tmp_path: Path) -> None:
    model = load_model(save_tiny_llama(tmp_path), dtype, ReferenceBackend())
    assert model.dtype is dtype
    assert model.context_length == 512
    assert model.vocab_size == 211
    assert [spec.dtype for spec in model.layer_specs] == [dtype] * 3


def edit_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"architectures": ["FalconH1ForCausalLM"]}, "state-space"),
        ({"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}}, "dynamic RoPE"),
        ({"rope_parameters": None, "rope_scaling": {"type": "dynamic", "factor": 2.0}}, "dynamic RoPE"),
        ({"quantization_config": {"quant_method": "awq"}}, "awq"),
    ],
)
def test_a_model_is_refused_before_its_weights_are_read(
    changes: dict[str, object], why: str, tmp_path: Path
) -> None:
    folder = save_tiny_mistral(tmp_path)
    (folder / "model.safetensors").unlink()
    edit_config(folder, **changes)
    with pytest.raises(UnsupportedModel, match=why):
        load_model(folder, torch.float32, ReferenceBackend())


def test_pickled_weights_are_never_read(tmp_path: Path) -> None:
    folder = save_tiny_llama(tmp_path)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(OSError, match="safetensors"):
        load_model(folder, torch.float32, ReferenceBackend())
