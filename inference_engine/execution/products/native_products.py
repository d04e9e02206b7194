"""Our own matrix products, for bf16 weights on CPUs that multiply bf16; kernels/products.h has the layout."""

import functools
import logging

import torch
from torch import Tensor

from inference_engine.execution.attention.build import KernelBuildError, load_kernel
from inference_engine.execution.models.numerics import read_cpu_flags

logger = logging.getLogger(__name__)

PANEL = 32
"""Outputs are packed by so many."""
GATES = 16
"""Gates of a panel; as many ups follow them."""


@functools.cache
def has_native_products() -> bool:
    """Whether bf16 weights are packed for our own kernels. Not on a CPU with matrix tiles (AMX), which only
    oneDNN uses, nor without a compiler."""
    if "amx_bf16" in read_cpu_flags():
        return False
    try:
        load_kernel()
    except KernelBuildError as error:
        logger.warning("no kernels of our own, so oneDNN multiplies: %s", error)
        return False
    return bool(torch.ops.octavo.has_products())


def has_int8_products() -> bool:
    """Whether what is packed for our own kernels can be turned into 8 bits."""
    return has_native_products() and bool(torch.ops.octavo.has_int8_products())


def pack_native(weight: Tensor) -> Tensor | None:
    """bf16 [outputs, inputs] -> packed; None where another kind of product has to serve."""
    is_fit = weight.dtype == torch.bfloat16 and weight.device.type == "cpu" and weight.shape[1] % 2 == 0
    if not is_fit or not has_native_products():
        return None
    num_outputs = -(-weight.shape[0] // PANEL) * PANEL
    packed: Tensor = torch.ops.octavo.allocate_huge(num_outputs * weight.shape[1] * weight.itemsize)
    packed = packed.view(torch.bfloat16)
    torch.ops.octavo.pack(weight.contiguous(), packed)
    return packed


def interleave(gate: Tensor, up: Tensor) -> Tensor:
    """[I, inputs] twice -> [2 I, inputs]: 16 gates, their 16 ups, the next 16 gates and so on."""
    inputs = gate.shape[1]
    return torch.stack((gate.view(-1, GATES, inputs), up.view(-1, GATES, inputs)), 1).view(-1, inputs)
