"""Our own forms of a layer's parts: the same arithmetic as transformers' in fewer, larger products.

Shapes: T packed rows, H query heads, K KV heads, D head dimension, I the MLP's inner width.
"""

from typing import Any

import torch
from torch import Tensor, nn
from transformers.activations import SiLUActivation

from inference_engine.execution.linear import PackedLinear
from inference_engine.execution.native_products import GATES, has_native_products, interleave
from inference_engine.execution.packed_step import PackedStep


class FusedAttention(nn.Module):
    """Query, key and value in one product, rotated together. Replaces a layer's whole attention module."""

    def __init__(self, original: Any, sliding_window: int | None) -> None:
        super().__init__()
        self.layer_idx: int = original.layer_idx
        self.head_dim: int = original.head_dim
        self.scaling: float = original.scaling
        self.sliding_window = sliding_window
        self.num_heads = original.q_proj.out_features // self.head_dim
        self.num_kv_heads = original.k_proj.out_features // self.head_dim
        self.qkv_proj = PackedLinear.stack(original.q_proj, original.k_proj, original.v_proj)
        self.o_proj = PackedLinear.stack(original.o_proj)

    def forward(
        self,
        hidden_states: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        packed_step: PackedStep,
        **kwargs: Any,
    ) -> tuple[Tensor, None]:
        """hidden_states [1, T, hidden] -> the same shape."""
        num_rotated = self.num_heads + self.num_kv_heads
        heads = self.qkv_proj(hidden_states[0]).view(-1, num_rotated + self.num_kv_heads, self.head_dim)
        rotated = rotate(heads[:, :num_rotated], *position_embeddings)
        output = packed_step.attend(
            self.layer_idx,
            rotated[:, : self.num_heads],
            rotated[:, self.num_heads :],
            heads[:, num_rotated:],
            scale=self.scaling,
            sliding_window=self.sliding_window,
        )
        return self.o_proj(output.flatten(1)).unsqueeze(0), None


class FusedMlp(nn.Module):
    """Gate and up in one product: down(act(gate(x)) * up(x))."""

    def __init__(self, original: Any) -> None:
        super().__init__()
        self.gate_up_proj = PackedLinear.stack(original.gate_proj, original.up_proj)
        self.down_proj = PackedLinear.stack(original.down_proj)
        self.act_fn = original.act_fn

    def forward(self, x: Tensor) -> Tensor:
        # The halves are strided, so the activation runs row by row: on contiguous rows its vectors would end
        # where the batch decides, and vector and scalar code round exp differently.
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
        down: Tensor = self.down_proj(self.act_fn(gate) * up)
        return down


class GatedMlp(nn.Module):
    """The same with SiLU as activation, which happens inside the product of gate and up."""

    def __init__(self, original: Any) -> None:
        super().__init__()
        gate, up = original.gate_proj.weight.detach(), original.up_proj.weight.detach()
        self.gate_up_proj = PackedLinear(interleave(gate, up))
        self.down_proj = PackedLinear.stack(original.down_proj)
        self.inner_width = gate.shape[0]

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1]).contiguous()
        activated = torch.ops.octavo.gated(rows, self.gate_up_proj.weight, self.inner_width)
        down: Tensor = self.down_proj(activated).view(*x.shape[:-1], -1)
        return down


def fuse_mlp(original: Any) -> "FusedMlp | GatedMlp":
    """The fastest form that can stand for a module with gate_proj, up_proj, down_proj and act_fn."""
    weight = original.gate_proj.weight
    is_plain = original.gate_proj.bias is None and isinstance(original.act_fn, (nn.SiLU, SiLUActivation))
    is_native = weight.dtype == torch.bfloat16 and weight.shape[0] % GATES == 0 and weight.shape[1] % 2 == 0
    return GatedMlp(original) if is_plain and is_native and has_native_products() else FusedMlp(original)


class RotaryTable(nn.Module):
    """Rotary embeddings read from a table of all positions, so that a row depends on its own position alone.

    (Computed per step, cos and sin run vectorised in the middle of a batch and as scalars at its end.)
    """

    def __init__(self, original: nn.Module, num_positions: int, dtype: torch.dtype) -> None:
        super().__init__()
        positions = torch.arange(num_positions).unsqueeze(0)
        cos, sin = (table[0].unsqueeze(1) for table in original(torch.empty(0, dtype=dtype), positions))
        first, second = sin.chunk(2, dim=-1)
        self.cos = nn.Buffer(cos, persistent=False)
        self.signed_sin = nn.Buffer(torch.cat((-first, second), dim=-1), persistent=False)

    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        """What `rotate` takes, for position_ids [1, T]: cos and signed sin, each [T, 1, D]."""
        return self.cos[position_ids[0]], self.signed_sin[position_ids[0]]


def rotate(heads: Tensor, cos: Tensor, signed_sin: Tensor) -> Tensor:
    """Rotary embedding of heads [T, N, D]; dimension i of the first half of D is paired with i of the second.

    (a, b) turns to (a cos - b sin, b cos + a sin): the minus is already in signed_sin.
    """
    first, second = heads.chunk(2, dim=-1)
    return heads * cos + torch.cat((second, first), dim=-1) * signed_sin
