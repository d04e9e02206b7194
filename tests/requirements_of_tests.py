"""What a test needs from the machine: absent, it is a skip with a reason; in CI the same is a failure."""

import os
from pathlib import Path

import pytest

BF16_PRODUCTS = {"avx512_bf16"}
INT8_PRODUCTS = {"avx512_bf16", "avx512_vnni"}


def require(condition: object, reason: str) -> None:
    """Go on where `condition` holds. `reason` says what is missing."""
    if condition:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"needed in CI: {reason}", pytrace=False)
    pytest.skip(reason)


def require_of_cpu(is_served: bool, flags: set[str]) -> None:
    """Go on where `is_served`. A processor without these flags is nobody's fault, in CI neither; one that has
    them and is not served is."""
    if is_served:
        return
    found = set(Path("/proc/cpuinfo").read_text().split())
    if flags <= found:
        pytest.fail(f"this processor has {', '.join(sorted(flags))}, and they are not used", pytrace=False)
    pytest.skip(f"this processor has no {', '.join(sorted(flags - found))}")
