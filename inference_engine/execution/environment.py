"""What must be in the process environment before torch is imported. Imports no torch itself."""

import os
from collections.abc import MutableMapping

PRIMITIVE_CACHE_CAPACITY = "8192"
"""oneDNN primitives kept: row buckets times weight shapes, with room. The default, 1024, evicts: half a
millisecond for each shape met again."""

SPIN_COUNT = "10000"
"""How long an OpenMP thread spins for its next piece before it sleeps. Unlimited, as by default, a step takes
ten times as long whenever some other process needs one of the cores."""


def prepare_environment(threads: int, environ: MutableMapping[str, str] = os.environ) -> None:
    """Set thread counts and library settings. What the operator has set already stays, but for the threads.

    Call it first thing in the serving entry: OpenMP and oneDNN read these once, when torch is loaded.
    """
    environ["OMP_NUM_THREADS"] = str(threads)
    environ["MKL_NUM_THREADS"] = str(threads)
    environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", PRIMITIVE_CACHE_CAPACITY)
    environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)
    environ.setdefault("HF_HUB_OFFLINE", "1")
    environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    environ.setdefault("TOKENIZERS_PARALLELISM", "false")
