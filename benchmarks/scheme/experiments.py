"""All experiments of the scheme, one after the other, and their figures in one record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.scheme import batching, costs, long_prompts, prefix_sharing
from benchmarks.scheme.engine import Engine
from benchmarks.scheme.progress import Progress

NUM_MODES = {"batching": 4, "pairs": 2}


@dataclass(frozen=True, slots=True)
class Plan:
    chats: batching.Sizes = field(default_factory=batching.Sizes)
    burst: long_prompts.Sizes = field(default_factory=long_prompts.Sizes)
    prefix: prefix_sharing.Sizes = field(default_factory=prefix_sharing.Sizes)
    loads: Sequence[int] = costs.LOADS
    contexts: Sequence[int] = costs.CONTEXTS

    @property
    def num_ticks(self) -> int:
        """Tokens and steps that the progress bar will count."""
        chats = sum(arrival.request.max_tokens for arrival in batching.arrivals(self.chats))
        burst = self.burst.num_decoding * self.burst.num_outputs + 8 * self.burst.num_long
        shared = self.prefix.num_requests * self.prefix.num_outputs
        steps = costs.REPETITIONS * (len(self.loads) + len(self.contexts))
        return NUM_MODES["batching"] * chats + NUM_MODES["pairs"] * (burst + shared) + steps


def run_experiments(engine: Engine, plan: Plan, progress: Progress) -> dict[str, Any]:
    tick = progress.advance
    progress.stage = "batching"
    runs = batching.run_all(engine, plan.chats, tick)
    progress.stage = "long prompts"
    burst = long_prompts.run_both(engine, plan.burst, tick)
    progress.stage = "prefix sharing"
    shared = prefix_sharing.run_both(engine, plan.prefix, tick)
    progress.stage = "costs"
    return {
        "batching": batching.figures(runs),
        "long_prompts": long_prompts.figures(burst, plan.burst),
        "prefix_sharing": prefix_sharing.figures(shared),
        "cost_of_load_ms": costs.cost_of_loads(engine, plan.loads, tick),
        "cost_of_context_ms": costs.cost_of_contexts(engine, plan.contexts, tick),
    }


def claims(results: Mapping[str, Any]) -> dict[str, Any]:
    """The project's headline figures. TTFT ratio: with the prefix cache, over without."""
    rows, gaps, prefix = results["batching"], results["long_prompts"], results["prefix_sharing"]
    return {
        "tokens_per_s": {name: rows[name]["tokens_per_s"] for name in ("static", "continuous", "chunked")},
        "idle_rows": {
            "static": rows["static"]["idle_rows"],
            "continuous": rows["continuous_contiguous"]["idle_rows"],
        },
        "kv_waste": {
            "contiguous": rows["continuous_contiguous"]["kv_waste"],
            "paged": rows["chunked"]["kv_waste"],
        },
        "gap_p99_over_p50": {name: gaps[name]["gap_p99_over_p50"] for name in ("chunked", "unchunked")},
        "prefix_ttft_ratio": round(prefix["on"]["ttft_mean_ms"] / prefix["off"]["ttft_mean_ms"], 3),
    }


def tables(results: Mapping[str, Any]) -> str:
    """Everything, to be read on a terminal."""
    parts = [_table(name, results[name]) for name in ("batching", "long_prompts", "prefix_sharing")]
    for name in ("cost_of_load_ms", "cost_of_context_ms"):
        parts.append(f"{name}\n  " + "  ".join(f"{key}: {value}" for key, value in results[name].items()))
    return "\n\n".join(parts)


def _table(name: str, rows: Mapping[str, Mapping[str, float]]) -> str:
    columns = list(next(iter(rows.values())))
    lines = [f"{name:<24}" + "".join(f"{column:>18}" for column in columns)]
    lines += [f"{row:<24}" + "".join(f"{figures[c]:>18}" for c in columns) for row, figures in rows.items()]
    return "\n".join(lines)
