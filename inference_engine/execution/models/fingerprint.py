"""One hash over everything that decides the bits of a model's logits, and how tokens are drawn from them."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers

from inference_engine.execution.models.numerics import read_cpu_flags
from inference_engine.execution.products.native_products import has_native_products
from inference_engine.execution.sampling.native_draws import has_native_draws

SOURCES = [Path(__file__).parents[1] / name for name in ("attention", "forward", "kernels", "products")]


def numerics_fingerprint(
    revision: str,
    config: Mapping[str, Any],
    *,
    dtype: str,
    backend: str,
    threads: int,
    min_rows: Mapping[str, int],
) -> str:
    """Equal fingerprints promise equal tokens for equal seeds, whatever the batch.

    revision: hash of the weights; config: the model's configuration (keys with a leading underscore, such
    as the path it came from, do not count); min_rows: what the start-up probe chose for each weight shape.
    Read here: the sources of kernels, layers and attention, the libraries' versions and the CPU's features,
    which decide what oneDNN and the compiler make of the same code.
    """
    facts = {
        "revision": revision,
        "config": {key: value for key, value in config.items() if not key.startswith("_")},
        "dtype": dtype,
        "backend": backend,
        "threads": threads,
        "min_rows": dict(min_rows),
        "sources": [source_hash(folder) for folder in SOURCES],
        "native_products": has_native_products(),
        "native_draws": has_native_draws(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "cpu": [torch.backends.cpu.get_cpu_capability(), *sorted(read_cpu_flags())],
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()


def source_hash(folder: Path) -> str:
    """Hash over the names and contents of the Python and C++ files of a folder."""
    whole = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in (".py", ".cpp", ".h"):
            whole.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()
