"""From a model directory to a checked, packed transformers module."""

import copy
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM
from transformers.utils import logging as transformers_logging

from inference_engine.execution.attention.backend import AttentionBackend, LayerSpec
from inference_engine.execution.forward.module_swaps import pack_model
from inference_engine.execution.forward.position_tables import freeze_positions
from inference_engine.execution.models.embedding_files import EmbeddingFiles, load_embedding_files
from inference_engine.execution.models.families import UnsupportedModel, check_architecture, check_layers
from inference_engine.execution.models.headless import without_head
from inference_engine.execution.models.layer_specs import layer_specs
from inference_engine.execution.models.numerics import dtype_name
from inference_engine.execution.models.self_check import (
    LENGTHS,
    check_small_copy,
    check_weights,
    eager_logits,
)
from inference_engine.execution.products.quantization import INT8


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A causal language model whose attention is ours and whose weights are packed."""

    module: Any
    """The transformers module: model_parts says where its parts are."""
    layer_specs: list[LayerSpec]
    dtype: torch.dtype
    context_length: int
    vocab_size: int
    precision: str
    """The dtype's name, or int8."""
    embedding: EmbeddingFiles | None = None
    """How vectors are made; such a model has no head."""


def load_model(
    model_dir: Path,
    dtype: torch.dtype,
    backend: AttentionBackend,
    context_length: int | None = None,
    *,
    in_int8: bool = False,
) -> LoadedModel:
    """Load, check and pack a model. Raises UnsupportedModel for one that can't be served exactly.

    context_length: at most so many positions are served, by default as many as the model was made for.
    in_int8: its linear layers but the head are rounded to 8 bits; dtype is bf16.
    """
    embedding = load_embedding_files(model_dir)
    written = json.loads((model_dir / "config.json").read_text())
    name = check_architecture(written, has_head=embedding is None)
    config = AutoConfig.from_pretrained(model_dir, local_files_only=True)
    check_layers(name, getattr(config, "layer_types", None), getattr(config, "rope_parameters", None))
    num_positions = min(context_length or config.max_position_embeddings, config.max_position_embeddings)
    check_small_copy(config, name, backend, num_positions)
    module = _load_module(model_dir, config, name, dtype, has_head=embedding is None)
    loaded = pack_and_check(module.eval().to(backend.device), name, backend, num_positions, in_int8=in_int8)
    return replace(loaded, embedding=embedding)


def _load_module(model_dir: Path, config: Any, name: str, dtype: torch.dtype, *, has_head: bool) -> Any:
    """Raises UnsupportedModel where weights are missing: they would be made up."""
    transformers_logging.disable_progress_bar()
    kind: Any = AutoModelForCausalLM if has_head else AutoModel
    module, found = kind.from_pretrained(
        model_dir,
        config=copy.deepcopy(config),
        dtype=dtype,
        attn_implementation="eager",
        local_files_only=True,
        use_safetensors=True,
        output_loading_info=True,
    )
    if missing := sorted(found["missing_keys"]):
        raise UnsupportedModel(name, f"its weights lack {missing[0]}")
    return module if has_head else without_head(module)


def pack_and_check(
    module: Any,
    name: str,
    backend: AttentionBackend,
    num_positions: int | None = None,
    *,
    in_int8: bool = False,
) -> LoadedModel:
    """Swap a module's attention and weights for ours and see that it computes the same as before."""
    config = module.config
    num_positions = num_positions or config.max_position_embeddings
    freeze_positions(module, num_positions)
    expected = eager_logits(module)
    pack_model(module, max(num_positions, *LENGTHS), in_int8=in_int8)
    check_weights(module, name, backend, expected)
    specs = layer_specs(config, module.dtype)
    precision = INT8 if in_int8 else dtype_name(module.dtype)
    return LoadedModel(module, specs, module.dtype, num_positions, config.vocab_size, precision)
