"""Weights and configuration of a Llama-family GGUF file, under the names and layouts transformers uses."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from gguf import GGUFReader, dequantize

from .conversion_error import ConversionError

FloatArray = npt.NDArray[np.float32]

_OUTER_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_LAYER_TENSOR = re.compile(r"blk\.(\d+)\.(\w+)\.weight")


def metadata_value(reader: GGUFReader, key: str, default: Any = None) -> Any:
    """Raises ConversionError where the key is absent and there is no default."""
    field = reader.get_field(key)
    if field is not None:
        return field.contents()
    if default is None:
        raise ConversionError(f"the GGUF file has no {key}")
    return default


def llama_config(reader: GGUFReader) -> dict[str, Any]:
    """The config.json of the model. Raises ConversionError for anything but the Llama architecture."""
    architecture = metadata_value(reader, "general.architecture")
    if architecture != "llama":
        raise ConversionError(f"GGUF architecture {architecture!r}: only 'llama' can be converted")
    heads = int(metadata_value(reader, "llama.attention.head_count"))
    hidden = int(metadata_value(reader, "llama.embedding_length"))
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "mlp_bias": False,
        "hidden_act": "silu",
        "initializer_range": 0.02,
        "hidden_size": hidden,
        "intermediate_size": int(metadata_value(reader, "llama.feed_forward_length")),
        "num_hidden_layers": int(metadata_value(reader, "llama.block_count")),
        "num_attention_heads": heads,
        "num_key_value_heads": int(metadata_value(reader, "llama.attention.head_count_kv", heads)),
        "head_dim": int(metadata_value(reader, "llama.rope.dimension_count", hidden // heads)),
        "max_position_embeddings": int(metadata_value(reader, "llama.context_length")),
        "vocab_size": len(metadata_value(reader, "tokenizer.ggml.tokens")),
        "rms_norm_eps": _shortest(metadata_value(reader, "llama.attention.layer_norm_rms_epsilon")),
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": _shortest(metadata_value(reader, "llama.rope.freq_base", 10_000.0)),
        },
        "tie_word_embeddings": all(tensor.name != "output.weight" for tensor in reader.tensors),
        "bos_token_id": int(metadata_value(reader, "tokenizer.ggml.bos_token_id")),
        "eos_token_id": int(metadata_value(reader, "tokenizer.ggml.eos_token_id")),
        "pad_token_id": int(metadata_value(reader, "tokenizer.ggml.padding_token_id")),
        "dtype": "bfloat16",
    }


def llama_weights(reader: GGUFReader, config: dict[str, Any]) -> Iterator[tuple[str, FloatArray]]:
    """(transformers name, dequantised fp32 array) of every tensor, one at a time."""
    num_heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    for tensor in reader.tensors:
        name, kind = _transformers_name(tensor.name)
        values = np.asarray(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
        yield name, _halves_from_pairs(values, num_heads[kind]) if kind in num_heads else values


def _transformers_name(name: str) -> tuple[str, str]:
    if name in _OUTER_NAMES:
        return _OUTER_NAMES[name], ""
    match = _LAYER_TENSOR.fullmatch(name)
    if match is None or match[2] not in _LAYER_NAMES:
        raise ConversionError(f"GGUF tensor {name!r} has no place in a Llama model")
    return f"model.layers.{match[1]}.{_LAYER_NAMES[match[2]]}.weight", match[2]


def _halves_from_pairs(weights: FloatArray, num_heads: int) -> FloatArray:
    """Rows of a query or key projection, from GGUF's rotary order to transformers'.

    A head's rotary partners are rows 2i and 2i + 1 in GGUF, rows i and i + head_dim / 2 in transformers.
    """
    pairs = weights.reshape(num_heads, -1, 2, weights.shape[1])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(weights.shape)


def _shortest(value: float) -> float:
    """GGUF holds 32-bit floats: 1e-05, not 9.99999974e-06."""
    return float(str(np.float32(value)))
