"""Which models are served, and why the others are not: every refusal names the model and the reason.

An architecture is accepted once it is proven exact when packed, chunked and in fp32; a test has every one.
"""

from collections.abc import Mapping
from typing import Any

ACCEPTED = {
    "LlamaForCausalLM": "Llama",
    "MistralForCausalLM": "Mistral",
    "Qwen2ForCausalLM": "Qwen2",
    "Qwen3ForCausalLM": "Qwen3",
    "Gemma2ForCausalLM": "Gemma 2",
    "Gemma3ForCausalLM": "Gemma 3 (text)",
    "Phi3ForCausalLM": "Phi-3",
    "GPTNeoXForCausalLM": "GPT-NeoX",
    "MixtralForCausalLM": "Mixtral",
    "Qwen3MoeForCausalLM": "Qwen3-MoE",
    "GptOssForCausalLM": "gpt-oss",
    "Olmo2ForCausalLM": "OLMo 2",
    "Olmo3ForCausalLM": "OLMo 3",
    "GraniteForCausalLM": "Granite",
    "SmolLM3ForCausalLM": "SmolLM3",
    "Cohere2ForCausalLM": "Cohere 2",
    "Glm4ForCausalLM": "GLM 4",
}
"""Architecture -> what people call the family."""

REASONS = {
    "BloomForCausalLM": "it never calls the attention interface (ALiBi)",
    "FalconH1ForCausalLM": "it never calls the attention interface (state-space layers)",
    "Qwen3NextForCausalLM": "it never calls the attention interface (linear attention layers)",
    "Lfm2ForCausalLM": "its convolution layers mix the sequences of a packed batch",
    "Llama4ForCausalLM": "chunked attention layers are not supported",
    "Llama4ForConditionalGeneration": "chunked attention layers are not supported",
    "DeepseekV2ForCausalLM": "latent attention is not supported",
    "DeepseekV3ForCausalLM": "latent attention is not supported",
    "Gemma3ForConditionalGeneration": "it takes images; of Gemma 3 only the text model is served",
} | dict.fromkeys(
    [
        "BertModel", "DistilBertModel", "RobertaModel", "XLMRobertaModel", "MPNetModel", "ModernBertModel",
        "NomicBertModel", "NewModel", "DebertaV2Model", "T5EncoderModel", "BertForMaskedLM",
        "ModernBertForMaskedLM",
    ],
    "its attention looks ahead",
)  # fmt: skip

LAYER_TYPES = frozenset({"full_attention", "sliding_attention"})
ROPE_TYPES = frozenset({"default", "linear", "llama3", "yarn", "longrope"})
ROPE_REASONS = {
    "dynamic": "dynamic RoPE reads the largest position of the whole batch, other requests' included",
}


class UnsupportedModel(ValueError):
    """A model that is not served; `name` is its architecture, `why` the reason in plain words."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name} is not supported: {why}")
        self.name = name
        self.why = why


def check_architecture(config: Mapping[str, Any], *, has_head: bool = True) -> str:
    """The architecture's name, from a config.json. Without a head it may be that of the layers alone. Raises
    UnsupportedModel."""
    architectures = config.get("architectures") or []
    name = str(architectures[0] if architectures else config.get("model_type", "a model without a type"))
    if (name if has_head else _with_head(name)) not in ACCEPTED:
        proven = ", ".join(ACCEPTED.values())
        raise UnsupportedModel(name, REASONS.get(name, f"proven exact are only {proven}"))
    if "auto_map" in config:
        raise UnsupportedModel(name, "it brings its own code, which is never run")
    if config.get("quantization_config"):
        method = config["quantization_config"].get("quant_method", "unknown")
        raise UnsupportedModel(name, f"its weights are quantised ({method})")
    if config.get("use_bidirectional_attention") or config.get("is_causal") is False:
        raise UnsupportedModel(name, "its attention looks ahead")
    return name


def _with_head(name: str) -> str:
    """Qwen3Model -> Qwen3ForCausalLM."""
    return name.removesuffix("Model").removesuffix("Text") + "ForCausalLM" if name.endswith("Model") else name


def check_layers(name: str, layer_types: list[str] | None, rope_parameters: Mapping[str, Any] | None) -> None:
    """Raises UnsupportedModel for a layer or position type that can't be served exactly."""
    for layer_type in layer_types or ():
        if layer_type not in LAYER_TYPES:
            raise UnsupportedModel(name, f"{layer_type.replace('_', ' ')} layers are not supported")
    for rope_type in _rope_types(rope_parameters or {}):
        if rope_type not in ROPE_TYPES:
            raise UnsupportedModel(
                name, ROPE_REASONS.get(rope_type, f"RoPE type {rope_type} is not supported")
            )


def _rope_types(parameters: Mapping[str, Any]) -> list[str]:
    """RoPE types of one set of parameters, or of one set per layer type."""
    nested = [value for value in parameters.values() if isinstance(value, Mapping)]
    return [str(each.get("rope_type", "default")) for each in (nested or [parameters])]
