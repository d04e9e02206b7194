"""Where the model runs: the CPU, or a GPU of NVIDIA's."""

import torch

from inference_engine.execution.memory.kv_memory import allowed_memory

CPU = torch.device("cpu")
GPU_POOL_FRACTION = 0.8
"""Of the GPU memory that is free once the weights are there, for KV blocks; activations, CUDA graphs and the
compiled kernels need the rest."""


def find_device(setting: str) -> torch.device:
    """`cpu`, `cuda` or `cuda:N`. Raises ValueError for another word, or for a GPU that is not here."""
    try:
        device = torch.device(setting)
    except RuntimeError as error:
        raise ValueError(f"device {setting!r} is neither cpu nor cuda nor cuda:N") from error
    if device.type == "cpu":
        return CPU
    if device.type != "cuda":
        raise ValueError(f"device {setting!r} is neither cpu nor cuda nor cuda:N")
    count = torch.cuda.device_count()
    if (device.index or 0) >= count:
        raise ValueError(f"device {setting!r} is not here: torch {torch.__version__} sees {count} GPUs")
    return torch.device("cuda", device.index or 0)


def gpu_dtype(setting: str) -> torch.dtype:
    """The type for "auto" (bf16), "bfloat16" or "float32"."""
    dtypes = {"auto": torch.bfloat16, "bfloat16": torch.bfloat16, "float32": torch.float32}
    if setting not in dtypes:
        raise ValueError(f"dtype {setting!r} is not one of {', '.join(dtypes)}: no other is served on a GPU")
    return dtypes[setting]


def select_device(device: torch.device) -> None:
    """Make a GPU the calling thread's own: kernels are launched on that one."""
    if device.type == "cuda":
        torch.cuda.set_device(device)


def free_memory(device: torch.device) -> int:
    """Bytes that a GPU can still give; on the CPU what the machine allows."""
    if device.type == "cpu":
        return allowed_memory()
    torch.cuda.empty_cache()  # what torch keeps for later counts as free
    free, _ = torch.cuda.mem_get_info(device)
    return int(free)
