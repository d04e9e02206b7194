"""The Triton kernels as machine code for GPUs that are not here: the compiler needs none."""

from pathlib import Path
from typing import Any

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from inference_engine.execution.attention import triton_kernels as kernels

INTEGERS = ("sequence_of_row", "query_start_loc", "seq_lens", "block_table")
STRIDES = (
    *("key_row", "key_head", "value_row", "value_head", "kv_block"),
    *("query_row", "query_head", "table_row", "window", "num_rows"),
)
SHARED_MEMORY = 99 * 1024
"""Of the least of the GPUs aimed at (compute capability 8.6)."""
SHAPE = {"HEADS": 32, "GROUP": 4, "DIM": 128, "PADDED_DIM": 128, "ROWS": 8, "PACKED": 32, "TILE": 32}
VARIANTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "store": (kernels.store, {"DIM": 80, "PADDED_DIM": 128}),
    "combine": (kernels.combine, {"HEADS": 32, "DIM": 128, "PADDED_DIM": 128, "SPLITS": 8}),
    "plain": (kernels.attend, {**SHAPE, "HAS_CAP": False, "HAS_SINKS": False, "SPLITS": 1}),
    "wide in fp32": (
        kernels.attend,
        {
            **SHAPE,
            "DIM": 256,
            "PADDED_DIM": 256,
            "TILE": 16,
            "HAS_CAP": True,
            "HAS_SINKS": False,
            "SPLITS": 1,
        },
    ),
    "all at once": (kernels.attend, {**SHAPE, "HAS_CAP": True, "HAS_SINKS": True, "SPLITS": 8}),
}


def signature(kernel: Any, dtype: str, constants: dict[str, Any]) -> dict[str, str]:
    """Types as the backend gives them."""
    types = {
        **dict.fromkeys(constants, "constexpr"),
        **dict.fromkeys(STRIDES, "i32"),
        **dict.fromkeys(INTEGERS, "*i32"),
        **dict.fromkeys(("partial_output", "partial_maximum", "partial_sum"), "*fp32"),
        "scale": "fp32",
        "softcap": "fp32",
        "slot_mapping": "*i64",
    }
    return {name: types.get(name, f"*{dtype}") for name in kernel.arg_names}


@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_kernel_becomes_machine_code(
    variant: str, capability: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    kernel, constants = VARIANTS[variant]
    dtype = "fp32" if variant.endswith("fp32") else "bf16"
    if kernel is kernels.attend:
        constants = {**constants, "MULTIPLIES": tl.float32 if dtype == "fp32" else tl.bfloat16}
    source = ASTSource(fn=kernel, signature=signature(kernel, dtype, constants), constexprs=constants)
    compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32))
    assert len(compiled.asm["cubin"]) > 1000
    assert compiled.metadata.shared <= SHARED_MEMORY
    uses_tensor_cores = "mma" in compiled.asm["ptx"]
    assert uses_tensor_cores == (kernel is kernels.attend and dtype == "bf16")
