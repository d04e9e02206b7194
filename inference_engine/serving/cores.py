"""How many cores this process may really use."""

import os
from pathlib import Path

CPU_MAX = Path("/sys/fs/cgroup/cpu.max")


def available_cores(cpu_max: Path = CPU_MAX) -> int:
    """Cores it may be scheduled on, or fewer where a container's quota allows less. At least 1."""
    return max(1, min(len(os.sched_getaffinity(0)), _quota(cpu_max)))


def _quota(cpu_max: Path) -> int:
    """cgroup v2: `max 100000`, or microseconds allowed and microseconds of a period."""
    try:
        allowed, period = cpu_max.read_text().split()
        return int(allowed) // int(period)
    except (OSError, ValueError):
        return os.cpu_count() or 1
