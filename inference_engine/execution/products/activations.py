"""Activations whose every element is computed alike, wherever in a batch it stands.

torch computes the elements at the end of a thread's share in scalar code, which rounds exp and tanh otherwise
than its vectors do. kernels/activations.h has ours. Without it, rows of halves of a product are strided, and
torch at least begins its vectors anew at each row.
"""

import functools
from enum import IntEnum
from typing import Any

import torch
from torch import Tensor, nn
from transformers.activations import GELUActivation, GELUTanh, NewGELUActivation, SiLUActivation

from inference_engine.execution.attention.build import KernelBuildError, load_kernel


class Kind(IntEnum):
    """The kernel's numbers for what it knows."""

    SILU = 0
    GELU_TANH = 1
    GELU_ERF = 2


KINDS: dict[type[nn.Module], Kind] = {
    nn.SiLU: Kind.SILU,
    SiLUActivation: Kind.SILU,
    GELUTanh: Kind.GELU_TANH,
    NewGELUActivation: Kind.GELU_TANH,
    GELUActivation: Kind.GELU_ERF,
}


@functools.cache
def has_kernels() -> bool:
    """Whether there are kernels of our own for tensors on the CPU."""
    try:
        load_kernel()
    except KernelBuildError:
        return False
    return True


def uses_kernels(x: Tensor) -> bool:
    return x.device.type == "cpu" and has_kernels()


class Activation:
    """act(x), or act(gate) * up, for rows [..., width] of one of transformers' activation modules."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._kind = KINDS.get(type(module))

    def __call__(self, x: Tensor, up: Tensor | None = None) -> Tensor:
        if self._kind is None or not uses_kernels(x):
            activated: Tensor = self._module(x)
            return activated if up is None else activated * up
        rows = None if up is None else up.flatten(0, -2)
        activated = torch.ops.octavo.activate(x.flatten(0, -2), rows, self._kind)
        return activated.view(x.shape)


def clamped_gate(gate: Tensor, up: Tensor, alpha: float, limit: float) -> Tensor:
    """gate * sigmoid(alpha * gate) * (up + 1) of both clamped to the limit, for rows [n, width]."""
    if uses_kernels(gate):
        activated: Tensor = torch.ops.octavo.activate_clamped(gate, up, alpha, limit)
        return activated
    gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    return gate * torch.sigmoid(gate * alpha) * (up + 1)


def soft_capped(logits: Tensor, cap: float) -> Tensor:
    """cap * tanh(logits / cap), for rows of fp32 logits that may be overwritten."""
    if uses_kernels(logits):
        torch.ops.octavo.soft_cap(logits, cap)
        return logits
    return cap * torch.tanh(logits / cap)
