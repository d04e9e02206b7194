"""The decoder in C++ against the Python modules that it stands for, and against itself."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from inference_engine.execution.attention.backend import AttentionBackend
from inference_engine.execution.attention.metadata import build_metadata
from inference_engine.execution.attention.reference import ReferenceBackend
from inference_engine.execution.attention.select import choose_backend
from inference_engine.execution.forward.module_swaps import pack_model
from inference_engine.execution.forward.packed_forward import hidden_states
from inference_engine.execution.forward.packed_step import ATTENTION_NAME, PackedStep
from inference_engine.execution.models.layer_specs import layer_specs
from inference_engine.execution.products.native_products import has_native_products
from requirements_of_tests import BF16_PRODUCTS, require_of_cpu
from tiny_models import save_tiny_llama, save_tiny_mistral

TOLERANCE = 0.05
"""Size of the difference relative to the states': bf16 rounding in these wild models is about 0.02."""
SAVERS = {"llama": save_tiny_llama, "mistral": save_tiny_mistral}


@pytest.fixture(autouse=True)
def _native(compiler: Path) -> None:
    require_of_cpu(has_native_products(), BF16_PRODUCTS)


def packed_model(folder: Path, dtype: torch.dtype = torch.bfloat16) -> Any:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()
    pack_model(model, 128)
    model.set_attn_implementation(ATTENTION_NAME)
    return model


@torch.inference_mode()
def states_of(model: Any, backend: AttentionBackend, lengths: list[int]) -> tuple[Tensor, PackedStep]:
    """Last hidden states of prompts of these lengths in one step."""
    layers = [backend.allocate(spec, 4 * len(lengths)) for spec in layer_specs(model.config, model.dtype)]
    tables = [list(range(4 * index, 4 * index + 4)) for index in range(len(lengths))]
    step = PackedStep(backend, layers, build_metadata([0] * len(lengths), lengths, tables))
    ids = [torch.arange(length) * 37 % 211 for length in lengths]
    return hidden_states(model, torch.cat(ids), step), step


@pytest.mark.parametrize("family", SAVERS)
def test_it_computes_what_the_python_modules_compute(family: str, tmp_path: Path) -> None:
    model = packed_model(SAVERS[family](tmp_path))
    native, step = states_of(model, choose_backend("cpu"), [37, 5])
    plain, _ = states_of(model, ReferenceBackend(), [37, 5])
    assert step.layer_calls == [0, 1, 2]
    assert not torch.equal(native, plain), "both ran the same code"
    assert (native.float() - plain.float()).norm() < TOLERANCE * plain.float().norm()


def test_it_is_closer_to_fp32_than_the_python_modules_are(tmp_path: Path) -> None:
    folder = save_tiny_llama(tmp_path)
    model, backend = packed_model(folder), choose_backend("cpu")
    exact, _ = states_of(packed_model(folder, torch.float32), backend, [40])
    native, _ = states_of(model, backend, [40])
    plain, _ = states_of(model, ReferenceBackend(), [40])
    assert (native.float() - exact).norm() < (plain.float() - exact).norm()


def test_a_sequence_is_bitwise_the_same_beside_others(tmp_path: Path) -> None:
    model, backend = packed_model(save_tiny_mistral(tmp_path)), choose_backend("cpu")
    lengths = [1, 64, 33, 2, 49]
    together, _ = states_of(model, backend, lengths)
    for length, states in zip(lengths, together.split(lengths), strict=True):
        assert torch.equal(states_of(model, backend, [length])[0], states)


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_act": "gelu"},
        {"attention_bias": True},
        {"mlp_bias": True},
        {"hidden_size": 80, "num_attention_heads": 5, "num_key_value_heads": 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_it_can_not_do_the_python_modules_do(change: dict[str, Any], tmp_path: Path) -> None:
    model = packed_model(save_tiny_llama(tmp_path, **change))
    assert model.native_decoder is None
    states, step = states_of(model, choose_backend("cpu"), [37])
    plain, _ = states_of(model, ReferenceBackend(), [37])
    assert step.layer_calls == [0, 1, 2]
    assert (states.float() - plain.float()).norm() < TOLERANCE * plain.float().norm()


def test_fp32_weights_are_left_to_the_python_modules(tmp_path: Path) -> None:
    assert packed_model(save_tiny_llama(tmp_path), torch.float32).native_decoder is None


def test_a_position_past_the_rotary_table_is_an_error(tmp_path: Path) -> None:
    model, backend = packed_model(save_tiny_llama(tmp_path)), choose_backend("cpu")
    layers = [backend.allocate(spec, 9) for spec in layer_specs(model.config, model.dtype)]
    step = PackedStep(backend, layers, build_metadata([128], [1], [list(range(9))]))
    with pytest.raises(RuntimeError, match="position 128"):
        hidden_states(model, torch.tensor([3]), step)
