"""One hash over everything that decides the bits of a model's logits."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import torch
import transformers


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

    revision: hash of the weights; config: the model's configuration (keys with a leading underscore, such as
    the path it came from, do not count); backend: name and version of the attention backend; min_rows: what
    the start-up probe chose for each weight shape. The machine's own part, instruction set and torch, is read
    here.
    """
    facts = {
        "revision": revision,
        "config": {key: value for key, value in config.items() if not key.startswith("_")},
        "dtype": dtype,
        "backend": backend,
        "threads": threads,
        "min_rows": dict(min_rows),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "cpu": torch.backends.cpu.get_cpu_capability(),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()
