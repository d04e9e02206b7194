"""int8: weights and the rows they meet in 8 bits, 64 inputs to a scale (kernels/int8_products.h)."""

from typing import Any

from inference_engine.execution.products.linear import PackedLinear
from inference_engine.execution.products.native_products import has_int8_products

INT8 = "int8"
"""The setting's value, and what a model's precision is then called."""


def quantise_linears(model: Any) -> None:
    """In place, layer by layer, all linear layers that are packed for our own kernels, but the head.

    What lies between them stays bf16. Raises ValueError where this machine can't multiply so.
    """
    if not has_int8_products():
        raise ValueError(
            "dtype int8 needs a C++ compiler and a CPU with AVX-512 VNNI and bf16 (and without AMX tiles)"
        )
    for module in model.modules():
        if isinstance(module, PackedLinear) and module.is_native and module is not model.lm_head:
            module.quantise()
