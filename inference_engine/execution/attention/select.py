"""Which attention backend serves."""

import logging

import torch

from inference_engine.execution.attention.backend import AttentionBackend
from inference_engine.execution.attention.build import KernelBuildError
from inference_engine.execution.attention.cpu import CpuBackend
from inference_engine.execution.attention.cpu_fallback import CpuFallbackBackend
from inference_engine.execution.attention.reference import ReferenceBackend

logger = logging.getLogger(__name__)

BACKENDS: dict[str, type[AttentionBackend]] = {
    backend.name: backend for backend in (CpuBackend, CpuFallbackBackend, ReferenceBackend)
}
AUTO = "auto"


TRITON = "triton"


def choose_backend(
    name: str = AUTO, device: torch.device | None = None, *, split_kv: bool = False
) -> AttentionBackend:
    """The backend of that name. `auto` is `triton` on a GPU, on the CPU (where there is no device) `cpu`, or
    where its kernel can't be compiled `cpu-fallback`.

    split_kv: see TritonBackend. Raises ValueError for a name that is none or not of that device,
    KernelBuildError where `cpu` is named and can't be compiled.
    """
    if device is not None and (device.type == "cuda" or name == TRITON):
        return _gpu_backend(name, device, split_kv)
    if split_kv:
        raise ValueError("only the triton attention backend splits a row's KV")
    if name == AUTO:
        return _best_backend()
    if name not in BACKENDS:
        known = ", ".join([AUTO, *BACKENDS, TRITON])
        raise ValueError(f"unknown attention backend {name!r}: {known}; triton only on a GPU")
    return BACKENDS[name]()


def _gpu_backend(name: str, device: torch.device, split_kv: bool) -> AttentionBackend:
    """Imports triton, which a machine without a GPU need not have."""
    if name not in (AUTO, TRITON):
        raise ValueError(f"the {name} attention backend does not run on a GPU")
    from inference_engine.execution.attention.triton import TritonBackend
    from inference_engine.execution.attention.triton_interpreter import is_interpreted

    if device.type != "cuda" and not is_interpreted():
        raise ValueError("the triton attention backend needs a GPU")
    return TritonBackend(device, batch_invariant=not split_kv)


def _best_backend() -> AttentionBackend:
    try:
        return CpuBackend()
    except KernelBuildError as error:
        logger.warning(
            "no attention kernel, so torch serves, slower and not batch-invariant: %s",
            error,
        )
        return CpuFallbackBackend()
