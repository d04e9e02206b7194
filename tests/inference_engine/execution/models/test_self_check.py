from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoConfig, LlamaForCausalLM

from inference_engine.execution.attention.backend import AttentionRule, KvLayer
from inference_engine.execution.attention.metadata import AttentionMetadata
from inference_engine.execution.attention.reference import ReferenceBackend
from inference_engine.execution.forward import module_swaps
from inference_engine.execution.forward.fused_modules import FusedAttention
from inference_engine.execution.forward.module_swaps import pack_model
from inference_engine.execution.models.families import UnsupportedModel
from inference_engine.execution.models.self_check import (
    check_small_copy,
    check_weights,
    eager_logits,
    small_copy,
)
from tiny_models import save_tiny_llama, save_tiny_mistral


class ForgetsTheCache(ReferenceBackend):
    """Sees only the rows of this step, as a backend without a block table would."""

    def _attend(
        self, layer: KvLayer, query: Tensor, metadata: AttentionMetadata, rule: AttentionRule
    ) -> Tensor:
        return super()._attend(layer, query, metadata, replace(rule, sliding_window=1))


class SkipsItsAttention(FusedAttention):
    def forward(self, hidden_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, None]:
        return hidden_states, None


class CallsTwice(FusedAttention):
    def forward(self, hidden_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, None]:
        super().forward(hidden_states, *args, **kwargs)
        return super().forward(hidden_states, *args, **kwargs)


def config_of(folder: Path) -> Any:
    return AutoConfig.from_pretrained(folder)


@pytest.mark.parametrize("save", [save_tiny_llama, save_tiny_mistral], ids=["llama", "mistral"])
def test_a_right_model_passes(save: Any, tmp_path: Path) -> None:
    check_small_copy(config_of(save(tmp_path)), "M", ReferenceBackend(), 64)


@pytest.mark.parametrize("wrong", [SkipsItsAttention, CallsTwice])
def test_a_model_that_does_not_call_us_once_a_layer_is_refused(
    wrong: type[FusedAttention], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(module_swaps.SWAPS, "LlamaAttention", lambda module: wrong(module, None))
    with pytest.raises(UnsupportedModel, match="called the attention interface"):
        check_small_copy(config_of(save_tiny_llama(tmp_path)), "M", ReferenceBackend(), 64)


def test_a_wrong_attention_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match="M is not supported: packed logits"):
        check_small_copy(config_of(save_tiny_llama(tmp_path)), "M", ForgetsTheCache(), 64)


@pytest.mark.parametrize("shift", [1, -1])
def test_a_window_that_is_off_by_one_is_refused(
    shift: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        module_swaps.SWAPS,
        "MistralAttention",
        lambda module: FusedAttention(module, module.config.sliding_window + shift),
    )
    with pytest.raises(UnsupportedModel, match="small copy"):
        check_small_copy(config_of(save_tiny_mistral(tmp_path)), "M", ReferenceBackend(), 64)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_weights_are_checked_too(dtype: torch.dtype, tmp_path: Path) -> None:
    module = LlamaForCausalLM.from_pretrained(
        save_tiny_llama(tmp_path), dtype=dtype, attn_implementation="eager"
    )
    expected = eager_logits(module.eval())
    pack_model(module, 64)
    check_weights(module, "M", ReferenceBackend(), expected)
    with pytest.raises(UnsupportedModel, match="of their size"):
        check_weights(module, "M", ForgetsTheCache(), expected)


def test_the_small_copy_leaves_the_config_and_the_random_state_alone(tmp_path: Path) -> None:
    config = config_of(save_tiny_mistral(tmp_path))
    before, state = config.to_dict(), torch.get_rng_state()
    small = small_copy(config)
    assert config.to_dict() == before
    assert torch.equal(torch.get_rng_state(), state)
    assert small.config.num_hidden_layers == 2
    assert small.config.sliding_window < before["sliding_window"]
