"""Our own forms of a layer's parts: the same arithmetic as transformers' in fewer, larger products.

Shapes: T packed rows, H query heads, K KV heads, D head dimension, I the MLP's inner width.
"""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from transformers.activations import SiLUActivation

from inference_engine.execution.forward.packed_step import PackedStep
from inference_engine.execution.products.activations import Activation
from inference_engine.execution.products.linear import PackedLinear
from inference_engine.execution.products.native_products import GATES, has_native_products, interleave


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
        self.activation = Activation(original.act_fn)

    def forward(self, x: Tensor) -> Tensor:
        down: Tensor = self.down_proj(self.activation(*self.gate_up_proj(x).chunk(2, dim=-1)))
        return down


class PlainMlp(nn.Module):
    """GPT-NeoX's: down(act(up(x)))."""

    def __init__(self, original: Any) -> None:
        super().__init__()
        self.up_proj = PackedLinear.stack(original.dense_h_to_4h)
        self.down_proj = PackedLinear.stack(original.dense_4h_to_h)
        self.activation = Activation(original.act)

    def forward(self, x: Tensor) -> Tensor:
        down: Tensor = self.down_proj(self.activation(self.up_proj(x)))
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
    is_native = weight.dtype == torch.bfloat16 and weight.device.type == "cpu" and has_native_products()
    is_whole = weight.shape[0] % GATES == 0 and weight.shape[1] % 2 == 0
    return GatedMlp(original) if is_plain and is_native and is_whole else FusedMlp(original)


def fuse_stacked_mlp(original: Any) -> "FusedMlp | GatedMlp":
    """The same of Phi-3's and GLM 4's, whose gates and ups are the two halves of one weight already."""
    gate, up = (_linear(half) for half in original.gate_up_proj.weight.detach().chunk(2))
    return fuse_mlp(
        SimpleNamespace(
            gate_proj=gate, up_proj=up, down_proj=original.down_proj, act_fn=original.activation_fn
        )
    )


def _linear(weight: Tensor) -> nn.Linear:
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    linear.weight = nn.Parameter(weight, requires_grad=False)
    return linear


def rotate(heads: Tensor, cos: Tensor, signed_sin: Tensor) -> Tensor:
    """Rotary embedding of heads [T, N, D]; dimension i of the first half of D is paired with i of the second.

    (a, b) turns to (a cos - b sin, b cos + a sin): the minus is already in signed_sin.
    """
    first, second = heads.chunk(2, dim=-1)
    return heads * cos + torch.cat((second, first), dim=-1) * signed_sin
