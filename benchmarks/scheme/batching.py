"""The same arrivals, the same KV memory: static batching, continuous, continuous with chunked prefill.

Contiguous reservation gives every request the slots of a whole context, so the memory holds few requests at
once; paging gives out blocks as they are needed, so it holds many.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.chat_work import draw_chats
from benchmarks.scheme.continuous import Arrival, run_continuous
from benchmarks.scheme.engine import Engine
from benchmarks.scheme.record import Run, percentile
from benchmarks.scheme.static import StaticBatches
from inference_engine.contract.limits import BLOCK_SIZE

SEED = 0


@dataclass(frozen=True, slots=True)
class Sizes:
    num_requests: int = 192
    """Twelve times the places: when nobody waits any more, the last long outputs run among empty places,
    which says nothing of the scheme. Of 96 requests that was two steps in five."""
    per_second: float = 30.0
    """Arrivals; more than any of them can serve, so that a queue builds up."""
    context: int = 2048
    """Slots that contiguous reservation holds for each request."""
    places: int = 16
    """Requests that the memory holds so."""
    paged_places: int = 64
    """Requests that may run at once in the same memory, paged."""
    max_step_tokens: int = 512

    @property
    def num_blocks(self) -> int:
        return self.places * self.context // BLOCK_SIZE


def arrivals(sizes: Sizes) -> list[Arrival]:
    """Poisson arrivals of chats."""
    draw = random.Random(SEED)  # noqa: S311
    at, found = 0.0, []
    for request in draw_chats(sizes.num_requests, SEED):
        at += draw.expovariate(sizes.per_second)
        found.append(Arrival(at, request))
    return found


def run_all(engine: Engine, sizes: Sizes, on_token: Callable[[], None]) -> dict[str, Run]:
    """The runs by name: static, continuous_contiguous, continuous, chunked."""
    work = arrivals(sizes)
    longest = max(len(arrival.request.prompt_ids) for arrival in work)
    whole = {"max_step_tokens": longest + sizes.paged_places + 1, "prefill_budget": longest}
    chunked = {"max_step_tokens": sizes.max_step_tokens}
    paged = {"num_blocks": sizes.num_blocks, "max_running": sizes.paged_places}
    static = StaticBatches(
        engine,
        on_token,
        size=sizes.places,
        reserved_each=sizes.context,
        max_step_tokens=sizes.max_step_tokens,
    )
    return {
        "static": static.run(work),
        "continuous_contiguous": run_continuous(
            engine, work, on_token, reserved_each=sizes.context, max_running=sizes.places, **whole
        ),
        "continuous": run_continuous(engine, work, on_token, **paged, **whole),
        "chunked": run_continuous(engine, work, on_token, **paged, **chunked),
    }


def figures(runs: dict[str, Run]) -> dict[str, dict[str, float]]:
    return {
        name: {
            "tokens_per_s": run.tokens_per_s,
            "idle_rows": run.idle_rows,
            "kv_waste": run.kv_waste,
            "steps": len(run.steps),
            "ttft_p50_s": round(percentile([each.ttft for each in run.timelines], 50), 3),
            "ttft_p99_s": round(percentile([each.ttft for each in run.timelines], 99), 3),
        }
        for name, run in runs.items()
    }
