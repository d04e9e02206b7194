"""How much memory the KV pool may take, and taking it for good."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from inference_engine.contract.limits import BLOCK_SIZE

POOL_FRACTION = 0.25
"""Of the memory allowed, what the pool takes at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolBudget:
    """What a KV pool may take: a fraction of the memory allowed, or what the first two say."""

    num_blocks: int | None = None
    pool_bytes: int | None = None
    allowed_bytes: int | None = None
    """Replaces the machine's answer: a GPU's memory that is free."""
    fraction: float = POOL_FRACTION


def allocate_prefaulted(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """A zeroed tensor whose pages are all mapped now, so that flat memory later means flat.

    torch.zeros maps pages on first touch (calloc); writing the zeros touches them.
    """
    return torch.empty(tuple(shape), dtype=dtype).fill_(0)


def pool_blocks(
    bytes_per_block: int, max_running: int, context_length: int, budget: PoolBudget = PoolBudget()
) -> int:
    """Blocks of the KV pool; `bytes_per_block` is the sum over all layers.

    The smaller of a fraction of the memory allowed and what max_running requests of full context can use,
    unless the budget names blocks or bytes. Raises ValueError when not even one block fits.
    """
    if budget.num_blocks is not None:
        num_blocks = budget.num_blocks
    elif budget.pool_bytes is not None:
        num_blocks = budget.pool_bytes // bytes_per_block
    else:
        allowed = allowed_memory() if budget.allowed_bytes is None else budget.allowed_bytes
        usable = max_running * -(-context_length // BLOCK_SIZE)
        num_blocks = min(int(allowed * budget.fraction) // bytes_per_block, usable)
    if num_blocks < 1:
        raise ValueError(f"the KV pool can't hold one block of {bytes_per_block} bytes")
    return num_blocks


def allowed_memory(proc: Path = Path("/proc"), cgroup_root: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes this process may use: the tightest limit of its cgroups (v1 or v2), at most physical memory."""
    return min([physical_memory(proc), *_cgroup_limits(proc, cgroup_root)])


def physical_memory(proc: Path = Path("/proc")) -> int:
    """Bytes of memory of the machine."""
    for line in (proc / "meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    raise ValueError("meminfo names no MemTotal")


def _cgroup_limits(proc: Path, root: Path) -> list[int]:
    """Every memory limit on the way from this process's cgroups up to their roots."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return []
    limits: list[int] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            limits += _limits_upwards(root, path, "memory.max")
        elif "memory" in controllers.split(","):
            limits += _limits_upwards(root / "memory", path, "memory.limit_in_bytes")
    return limits


def _limits_upwards(mount: Path, path: str, file_name: str) -> list[int]:
    """Limits of a cgroup and of all its ancestors. A path unseen in a container has none but the root's."""
    folder = mount / path.lstrip("/")
    limits = []
    while True:
        limits += _read_limit(folder / file_name)
        if folder == mount or mount not in folder.parents:
            return limits
        folder = folder.parent


def _read_limit(file: Path) -> list[int]:
    """The limit in a file; none where it is absent or says `max`."""
    try:
        text = file.read_text().strip()
    except OSError:
        return []
    return [int(text)] if text.isdigit() else []
