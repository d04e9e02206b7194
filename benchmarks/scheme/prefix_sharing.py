"""Many requests over one long prefix, with the prefix cache and without."""

import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.chat_work import TOKEN_IDS, ChatRequest
from benchmarks.scheme.continuous import Arrival, run_continuous
from benchmarks.scheme.engine import Engine
from benchmarks.scheme.record import Run


@dataclass(frozen=True, slots=True)
class Sizes:
    num_requests: int = 32
    prefix: int = 512
    own: int = 16
    """Prompt tokens after the prefix."""
    num_outputs: int = 8


def run_both(engine: Engine, sizes: Sizes, on_token: Callable[[], None]) -> dict[str, Run]:
    """The first request comes alone and leaves the prefix in the cache, if there is one; then all others."""
    draw = random.Random(0)  # noqa: S311
    prefix = [draw.randint(*TOKEN_IDS) for _ in range(sizes.prefix)]
    requests = [
        ChatRequest([*prefix, *(draw.randint(*TOKEN_IDS) for _ in range(sizes.own))], sizes.num_outputs)
        for _ in range(sizes.num_requests)
    ]
    runs = {}
    for name, is_cached in (("off", False), ("on", True)):
        settings = {"max_running": sizes.num_requests, "enable_prefix_cache": is_cached}
        runs[name] = run_continuous(engine, _one_then_all(requests), on_token, **settings)
    return runs


def figures(runs: dict[str, Run]) -> dict[str, dict[str, float]]:
    """TTFT of all but the first; computed tokens of all."""
    return {
        name: {
            "ttft_mean_ms": round(1e3 * statistics.fmean(each.ttft for each in run.timelines[1:]), 1),
            "computed_tokens": run.computed_tokens,
        }
        for name, run in runs.items()
    }


def _one_then_all(requests: list[ChatRequest]) -> list[Arrival]:
    return [Arrival(float(index > 0), request) for index, request in enumerate(requests)]
