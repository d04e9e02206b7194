"""A burst of long prompts beside running decodes, prefilled whole and in chunks: what becomes of the gaps."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.chat_work import TOKEN_IDS, ChatRequest
from benchmarks.scheme.continuous import Arrival, run_continuous
from benchmarks.scheme.engine import Engine
from benchmarks.scheme.record import Run, percentile

SHORT_PROMPT = 16


@dataclass(frozen=True, slots=True)
class Sizes:
    num_decoding: int = 16
    num_outputs: int = 240
    num_long: int = 4
    long_prompt: int = 900
    burst_at: float = 1.0
    """Seconds after the decodes have arrived."""
    chunk_budget: int | None = None
    """Prefill tokens beside decodes; None is the scheduler's default."""


def run_both(engine: Engine, sizes: Sizes, on_token: Callable[[], None]) -> dict[str, Run]:
    places = sizes.num_decoding + sizes.num_long
    whole = {"prefill_budget": sizes.long_prompt, "max_step_tokens": sizes.long_prompt + places + 1}
    chunked = {} if sizes.chunk_budget is None else {"prefill_budget": sizes.chunk_budget}
    work = _work(sizes)
    return {
        "unchunked": run_continuous(engine, work, on_token, max_running=places, **whole),
        "chunked": run_continuous(engine, work, on_token, max_running=places, **chunked),
    }


def figures(runs: dict[str, Run], sizes: Sizes) -> dict[str, dict[str, float]]:
    """Gaps are those of the decodes, from the burst on until they end."""
    return {name: _figures(run, sizes) for name, run in runs.items()}


def _figures(run: Run, sizes: Sizes) -> dict[str, float]:
    decodes, long = run.timelines[: sizes.num_decoding], run.timelines[sizes.num_decoding :]
    gaps = [gap for timeline in decodes for gap in timeline.gaps(since=sizes.burst_at)]
    p50, p99 = percentile(gaps, 50), percentile(gaps, 99)
    ttfts = [timeline.ttft for timeline in long]
    return {
        "gap_p50_ms": round(1e3 * p50, 1),
        "gap_p99_ms": round(1e3 * p99, 1),
        "gap_p99_over_p50": round(p99 / p50, 2),
        "long_ttft_p50_ms": round(1e3 * percentile(ttfts, 50), 1),
        "long_ttft_p99_ms": round(1e3 * percentile(ttfts, 99), 1),
    }


def _work(sizes: Sizes) -> list[Arrival]:
    draw = random.Random(0)  # noqa: S311
    decodes = [
        Arrival(0.0, _request(draw, SHORT_PROMPT, sizes.num_outputs)) for _ in range(sizes.num_decoding)
    ]
    burst = [Arrival(sizes.burst_at, _request(draw, sizes.long_prompt, 8)) for _ in range(sizes.num_long)]
    return decodes + burst


def _request(draw: random.Random, num_prompt: int, num_outputs: int) -> ChatRequest:
    return ChatRequest([draw.randint(*TOKEN_IDS) for _ in range(num_prompt)], num_outputs)
