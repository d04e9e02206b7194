"""Where the parts of a transformers causal language model are, whatever its family calls them."""

from collections.abc import Iterator
from typing import Any

from torch import nn


def decoder_of(module: Any) -> Any:
    """The stack of layers with the embedding below and the final norm above: ids to hidden states."""
    return getattr(module, getattr(module, "base_model_prefix", "model"))


def final_norm_of(module: Any) -> nn.Module:
    """The norm between the last layer and the head."""
    named = decoder_of(module).named_children()
    return next(child for name, child in named if name.endswith("norm"))


def rowwise_parts_of_layers(module: Any) -> Iterator[nn.Module]:
    """What each layer is made of, but its attention: all of it works on single rows."""
    for layer in decoder_of(module).layers:
        yield from (child for child in layer.children() if not is_attention(child))


def is_attention(module: nn.Module) -> bool:
    """Only attention knows which layer it is in: it keeps keys and values there."""
    return hasattr(module, "layer_idx")
