"""Time on a device, and what the device can do at best."""

import statistics
import time
from collections.abc import Callable

import torch

REPETITIONS = 20


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def median_ms(work: Callable[[], object], device: torch.device, repetitions: int = REPETITIONS) -> float:
    """Milliseconds of one call, after two to warm up."""
    for _ in range(2):
        work()
    times = []
    for _ in range(repetitions):
        synchronise(device)
        started = time.perf_counter()
        work()
        synchronise(device)
        times.append((time.perf_counter() - started) * 1e3)
    return statistics.median(times)


def read_bytes_per_s(device: torch.device, num_bytes: int) -> float:
    """Bytes a second of a sum over so many."""
    data = torch.ones(num_bytes // 4, dtype=torch.float32, device=device)
    return num_bytes / (median_ms(data.sum, device) / 1e3)


def flops_per_s(device: torch.device, size: int) -> float:
    """bf16 operations a second of a square product."""
    a = torch.randn(size, size, dtype=torch.bfloat16, device=device)
    return 2 * size**3 / (median_ms(lambda: a @ a, device) / 1e3)
