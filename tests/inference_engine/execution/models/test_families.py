from typing import Any

import pytest

from inference_engine.execution.models.families import UnsupportedModel, check_architecture, check_layers


@pytest.mark.parametrize("name", ["LlamaForCausalLM", "GPTNeoXForCausalLM", "GptOssForCausalLM"])
def test_proven_architectures_are_accepted(name: str) -> None:
    assert check_architecture({"architectures": [name]}) == name


@pytest.mark.parametrize(
    ("config", "name", "why"),
    [
        ({"architectures": ["BloomForCausalLM"]}, "BloomForCausalLM", "attention interface"),
        ({"architectures": ["Lfm2ForCausalLM"]}, "Lfm2ForCausalLM", "convolution"),
        ({"architectures": ["Llama4ForCausalLM"]}, "Llama4ForCausalLM", "chunked"),
        ({"architectures": ["DeepseekV3ForCausalLM"]}, "DeepseekV3ForCausalLM", "latent"),
        ({"architectures": ["Qwen3NextForCausalLM"]}, "Qwen3NextForCausalLM", "linear"),
        ({"architectures": ["Gemma3ForConditionalGeneration"]}, "Gemma3ForConditionalGeneration", "images"),
        ({"architectures": ["FalconH1ForCausalLM"]}, "FalconH1ForCausalLM", "state-space"),
        ({"architectures": ["OPTForCausalLM"]}, "OPTForCausalLM", "proven"),
        ({"model_type": "mamba"}, "mamba", "proven"),
        ({}, "without a type", "proven"),
        ({"architectures": ["LlamaForCausalLM"], "auto_map": {}}, "LlamaForCausalLM", "own code"),
        (
            {"architectures": ["LlamaForCausalLM"], "quantization_config": {"quant_method": "gptq"}},
            "LlamaForCausalLM",
            "gptq",
        ),
        (
            {"architectures": ["Gemma2ForCausalLM"], "use_bidirectional_attention": True},
            "Gemma2ForCausalLM",
            "ahead",
        ),
    ],
)
def test_others_are_refused_by_name_and_reason(config: dict[str, Any], name: str, why: str) -> None:
    with pytest.raises(UnsupportedModel) as caught:
        check_architecture(config)
    assert name in caught.value.name
    assert why in caught.value.why
    assert caught.value.name in str(caught.value)


@pytest.mark.parametrize("rope_type", ["default", "linear", "llama3", "yarn", "longrope"])
def test_fixed_position_types_are_accepted(rope_type: str) -> None:
    check_layers("M", ["full_attention", "sliding_attention"], {"rope_type": rope_type})


@pytest.mark.parametrize(
    ("rope", "why"),
    [
        ({"rope_type": "dynamic"}, "dynamic"),
        ({"rope_type": "made_up"}, "made_up"),
        (
            {"full_attention": {"rope_type": "default"}, "sliding_attention": {"rope_type": "dynamic"}},
            "dynamic",
        ),
    ],
)
def test_position_types_that_read_the_batch_are_refused(rope: dict[str, Any], why: str) -> None:
    with pytest.raises(UnsupportedModel, match=why):
        check_layers("M", None, rope)


@pytest.mark.parametrize("layer_type", ["chunked_attention", "linear_attention", "conv"])
def test_layers_that_are_no_paged_attention_are_refused(layer_type: str) -> None:
    with pytest.raises(UnsupportedModel, match=layer_type.split("_")[0]):
        check_layers("M", ["full_attention", layer_type], None)
