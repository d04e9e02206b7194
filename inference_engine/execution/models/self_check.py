"""What is checked of every model before it serves: some declare support for custom attention and are wrong.

Two sequences are packed into one batch, each in two chunks, over shuffled blocks. Every layer must call our
attention exactly once a step, and the logits must be those of the module's own eager attention, one sequence
at a time. Done twice: on a small fp32 copy with the windows shrunk, where the tolerance is sharp, and on the
weights.
"""

import copy
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from inference_engine.execution.attention.backend import AttentionBackend, KvLayer
from inference_engine.execution.attention.metadata import build_metadata
from inference_engine.execution.forward.module_swaps import pack_model
from inference_engine.execution.forward.packed_forward import hidden_states, logits_of_rows
from inference_engine.execution.forward.packed_step import ATTENTION_NAME, PackedStep
from inference_engine.execution.forward.position_tables import freeze_positions
from inference_engine.execution.models.families import UnsupportedModel
from inference_engine.execution.models.layer_specs import layer_specs

LENGTHS = (37, 21)
"""Tokens of the two sequences: several blocks each, neither a multiple of a block."""
FIRST_CHUNKS = (19, 20)
BLOCK_TABLES = ([5, 1, 3], [4, 2])
NUM_BLOCKS = 6
NUM_SMALL_LAYERS = 2
PER_LAYER = ("layer_types", "no_rope_layers")
"""Settings that have an entry for each layer."""
SMALL_WINDOW = 5
SMALL_CAP = 1.0
SMALL_WIDTH = 64
"""Vocabulary and inner width of the small copy."""
FP32_TOLERANCE = 1e-3
"""Largest difference of any logit of the small copy."""
WEIGHTS_TOLERANCE = 0.1
"""Size of the difference relative to the logits': bf16 rounding is about 0.01, a wrong mask about 1."""


def check_small_copy(config: Any, name: str, backend: AttentionBackend, num_positions: int) -> None:
    """Raises UnsupportedModel where a small random fp32 model of this config, to be served for texts of up to
    num_positions tokens, differs from its eager self."""
    small = small_copy(config).to(backend.device)
    freeze_positions(small, num_positions)
    expected = eager_logits(small)
    pack_model(small, max(LENGTHS))
    difference = (packed_logits(small, name, backend) - expected).abs().max().item()
    if not difference <= FP32_TOLERANCE:
        raise UnsupportedModel(name, f"packed logits of a small copy are off by {difference:.2g}")


def check_weights(module: Any, name: str, backend: AttentionBackend, expected: Tensor) -> None:
    """Raises UnsupportedModel where a packed model's logits are not its `eager_logits` from before."""
    error = (packed_logits(module, name, backend) - expected).norm() / expected.norm()
    if not error.item() <= WEIGHTS_TOLERANCE:
        raise UnsupportedModel(name, f"packed logits are off by {error.item():.2g} of their size")


def small_copy(config: Any) -> Any:
    """An fp32 model with the config's heads and hidden size, few layers, one of each kind at least, random
    weights, short windows and sharp caps."""
    small = copy.deepcopy(config)
    small.update(_small_sizes(config))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = AutoModelForCausalLM.from_config(small, dtype=torch.float32, attn_implementation="eager")
    return module.eval()


def _small_sizes(config: Any) -> dict[str, Any]:
    layers = _layers_to_keep(config)
    changed = {
        "num_hidden_layers": len(layers),
        "vocab_size": SMALL_WIDTH,
        "intermediate_size": SMALL_WIDTH,
        "pad_token_id": None,
        "initializer_range": config.hidden_size**-0.5,
    }
    smaller = {
        "moe_intermediate_size": SMALL_WIDTH,
        "mlp_only_layers": [],
        "decoder_sparse_step": 1,
        "sliding_window": SMALL_WINDOW,
        "attn_logit_softcapping": SMALL_CAP,
    }
    changed |= {name: value for name, value in smaller.items() if getattr(config, name, None) is not None}
    return changed | {
        name: [getattr(config, name)[index] for index in layers] for name in _lists_of_layers(config)
    }


def _layers_to_keep(config: Any) -> list[int]:
    """The first layer of each kind, and of a model with one kind the first two."""
    lists = [getattr(config, name) for name in _lists_of_layers(config)]
    kinds = list(zip(*lists, strict=True)) if lists else []
    firsts = sorted({kinds.index(kind) for kind in kinds})
    return firsts if len(firsts) > 1 else list(range(min(NUM_SMALL_LAYERS, config.num_hidden_layers)))


def _lists_of_layers(config: Any) -> list[str]:
    return [name for name in PER_LAYER if getattr(config, name, None)]


@torch.inference_mode()
def eager_logits(module: Any) -> Tensor:
    """fp32 logits of both sequences by the module's own attention, one sequence at a time, end to end."""
    logits = [
        module(input_ids=ids.unsqueeze(0), use_cache=False).logits[0].float() for ids in _sequences(module)
    ]
    return torch.cat(logits)


@torch.inference_mode()
def packed_logits(module: Any, name: str, backend: AttentionBackend) -> Tensor:
    """The same logits by our attention, both sequences in each of two steps. Counts the attention calls."""
    module.set_attn_implementation(ATTENTION_NAME)
    kv_layers = [backend.allocate(spec, NUM_BLOCKS) for spec in layer_specs(module.config, module.dtype)]
    sequences = _sequences(module)
    rests = [length - first for length, first in zip(LENGTHS, FIRST_CHUNKS, strict=True)]
    firsts = _step(module, name, backend, kv_layers, sequences, (0, 0), FIRST_CHUNKS)
    lasts = _step(module, name, backend, kv_layers, sequences, FIRST_CHUNKS, rests)
    return torch.cat([part for pair in zip(firsts, lasts, strict=True) for part in pair])


def _step(
    module: Any,
    name: str,
    backend: AttentionBackend,
    kv_layers: list[KvLayer],
    sequences: list[Tensor],
    starts: tuple[int, ...],
    lengths: tuple[int, ...] | list[int],
) -> tuple[Tensor, ...]:
    """Logits of one packed step, split by sequence."""
    metadata = build_metadata(starts, lengths, BLOCK_TABLES).to(backend.device)
    step = PackedStep(backend, kv_layers, metadata)
    chunks = [
        ids[start : start + length] for ids, start, length in zip(sequences, starts, lengths, strict=True)
    ]
    states = hidden_states(module, torch.cat(chunks), step)
    if step.layer_calls != list(range(len(kv_layers))):
        raise UnsupportedModel(
            name, f"its {len(kv_layers)} layers called the attention interface as {step.layer_calls}"
        )
    return logits_of_rows(module, states, torch.arange(sum(lengths))).split(list(lengths))


def _sequences(module: Any) -> list[Tensor]:
    """Two fixed sequences of ids that jump about the vocabulary."""
    vocab_size = module.config.vocab_size
    return [
        torch.arange(1, length + 1, device=module.device) * (7919 + length) % vocab_size for length in LENGTHS
    ]
