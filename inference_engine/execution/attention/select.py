"""Which attention backend serves."""

import logging

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


def choose_backend(name: str = AUTO) -> AttentionBackend:
    """The backend of that name; `auto` is `cpu`, or where its kernel can't be compiled `cpu-fallback`.

    Raises ValueError for a name that is none, KernelBuildError where `cpu` is named and can't be compiled.
    """
    if name == AUTO:
        return _best_backend()
    if name not in BACKENDS:
        raise ValueError(f"unknown attention backend {name!r}: {', '.join([AUTO, *BACKENDS])}")
    return BACKENDS[name]()


def _best_backend() -> AttentionBackend:
    try:
        return CpuBackend()
    except KernelBuildError as error:
        logger.warning(
            "no attention kernel, so torch serves, slower and not batch-invariant: %s",
            error,
        )
        return CpuFallbackBackend()
