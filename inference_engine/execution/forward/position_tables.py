"""Rotary embeddings from tables of all positions, so that a row depends on its own position alone.

(Computed per step, cos and sin run vectorised in the middle of a batch and as scalars at its end.)
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

LONGROPE = "longrope"


class PositionTable(nn.Module):
    """Stands for a model's own rotary module and gives what it gave: cos and sin [1, T, D]."""

    def __init__(self, original: Any, num_positions: int, dtype: torch.dtype) -> None:
        super().__init__()
        for layer_type in rotary_kinds(original):
            for name, table in zip(
                ("cos", "sin"), tables_of(original, layer_type, num_positions, dtype), strict=True
            ):
                setattr(self, _name(name, layer_type), nn.Buffer(table, persistent=False))

    def forward(
        self, x: Tensor, position_ids: Tensor, layer_type: str | None = None
    ) -> tuple[Tensor, Tensor]:
        """For position_ids [1, T]. layer_type: for models whose kinds of layer rotate differently."""
        cos, sin = (getattr(self, _name(name, layer_type)) for name in ("cos", "sin"))
        return cos[position_ids], sin[position_ids]


class RotaryTable(nn.Module):
    """The same in the form that `rotate` takes: cos and signed sin, each [T, 1, D]."""

    def __init__(self, original: Any, num_positions: int, dtype: torch.dtype) -> None:
        super().__init__()
        cos, sin = (table.unsqueeze(1) for table in tables_of(original, None, num_positions, dtype))
        first, second = sin.chunk(2, dim=-1)
        self.cos = nn.Buffer(cos, persistent=False)
        self.signed_sin = nn.Buffer(torch.cat((-first, second), dim=-1), persistent=False)

    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        return self.cos[position_ids[0]], self.signed_sin[position_ids[0]]


def tables_of(
    original: Any, layer_type: str | None, num_positions: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """cos and sin [num_positions, D] of a rotary module for activations of that dtype."""
    device = next(original.buffers()).device
    positions = torch.arange(num_positions, device=device).unsqueeze(0)
    like = torch.empty(0, dtype=dtype, device=device)
    cos, sin = original(like, positions, **({"layer_type": layer_type} if layer_type else {}))
    return cos[0], sin[0]


def rotary_kinds(original: Any) -> list[str | None]:
    """The layer types with frequencies of their own; [None] where all layers rotate alike."""
    return list(original.rope_type) if isinstance(original.rope_type, dict) else [None]


def freeze_positions(module: nn.Module, num_positions: int) -> None:
    """Fix longrope's choice of frequencies to the one for texts of num_positions tokens.

    transformers looks at the largest position of the batch, so one text's length would change another's.
    """
    for rotary in rotary_modules(module):
        for layer_type in rotary_kinds(rotary):
            rope_type = rotary.rope_type if layer_type is None else rotary.rope_type[layer_type]
            if rope_type == LONGROPE:
                _freeze(rotary, layer_type, num_positions)


def rotary_modules(module: nn.Module) -> Iterator[Any]:
    return (child for child in module.modules() if type(child).__name__.endswith("RotaryEmbedding"))


def _freeze(rotary: Any, layer_type: str | None, num_positions: int) -> None:
    last = torch.tensor([[num_positions - 1]], device=next(rotary.buffers()).device)
    rotary(last.float(), last, **({"layer_type": layer_type} if layer_type else {}))
    if layer_type is None:
        rotary.rope_type = "default"
    else:
        rotary.rope_type = {**rotary.rope_type, layer_type: "default"}


def _name(table: str, layer_type: str | None) -> str:
    return f"{layer_type}_{table}" if layer_type else table
