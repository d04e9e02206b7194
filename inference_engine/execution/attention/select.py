"""Which attention backend serves."""

from inference_engine.execution.attention.backend import AttentionBackend
from inference_engine.execution.attention.reference import ReferenceBackend


def choose_backend(name: str = "auto") -> AttentionBackend:
    """The backend of that name. Raises ValueError for a name that is none."""
    if name not in ("auto", "reference"):
        raise ValueError(f"unknown attention backend {name!r}")
    return ReferenceBackend()
