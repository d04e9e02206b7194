"""Which floating-point type the model runs in."""

from pathlib import Path

import torch

DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32, "int8": torch.bfloat16}
"""By setting. int8 is what linear layers are rounded to (see quantization); all else is bf16 then."""
BF16_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
"""As the kernel spells them: AVX-512 bf16 and AMX on x86, NEON bf16 on Arm."""


def choose_dtype(setting: str, cpu_flags: frozenset[str] | None = None) -> torch.dtype:
    """The dtype for a setting of `DTYPES` or "auto": bf16 where the CPU itself multiplies bf16."""
    if setting in DTYPES:
        return DTYPES[setting]
    if setting != "auto":
        raise ValueError(f"dtype {setting!r} is not one of auto, {', '.join(DTYPES)}")
    flags = read_cpu_flags() if cpu_flags is None else cpu_flags
    return torch.bfloat16 if flags & BF16_FLAGS else torch.float32


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def read_cpu_flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """Feature flags of the first CPU; empty where the system names none."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return frozenset()
    named = [line.split(":", 1)[1].split() for line in lines if line.startswith(("flags", "Features"))]
    return frozenset(named[0]) if named else frozenset()
