"""The results as pictures: one PNG for each claim."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # before pyplot: no screen is needed
from matplotlib import pyplot as plt


def draw_all(results: Mapping[str, Any], folder: Path) -> list[Path]:
    """Returns the files."""
    batching, prompts, prefix = results["batching"], results["long_prompts"], results["prefix_sharing"]
    return [
        _bars(folder / "tokens_per_s.png", "Output tokens a second", column(batching, "tokens_per_s")),
        _bars(folder / "idle_rows.png", "Idle rows, fraction", column(batching, "idle_rows")),
        _bars(
            folder / "kv_waste.png", "KV slots reserved but unused, fraction", column(batching, "kv_waste")
        ),
        _bars(folder / "gaps.png", "p99 gap over p50", column(prompts, "gap_p99_over_p50")),
        _bars(
            folder / "prefix_ttft.png",
            "Mean TTFT with the cache off and on, ms",
            column(prefix, "ttft_mean_ms"),
        ),
        _line(folder / "cost_of_load.png", "One step, ms", "concurrent requests", results["cost_of_load_ms"]),
        _line(
            folder / "cost_of_context.png", "One step of 4 rows, ms", "context", results["cost_of_context_ms"]
        ),
    ]


def column(table: Mapping[str, Mapping[str, float]], name: str) -> dict[str, float]:
    return {row: figures[name] for row, figures in table.items()}


def _bars(file: Path, title: str, values: Mapping[str, float]) -> Path:
    figure, axes = plt.subplots(figsize=(6, 3.5))
    axes.bar_label(axes.bar([name.replace("_", "\n") for name in values], list(values.values())))
    return _save(file, title, figure, axes)


def _line(file: Path, title: str, label: str, values: Mapping[int, float]) -> Path:
    figure, axes = plt.subplots(figsize=(6, 3.5))
    axes.plot([int(x) for x in values], list(values.values()), marker="o")
    axes.set_xlabel(label)
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    return _save(file, title, figure, axes)


def _save(file: Path, title: str, figure: Any, axes: Any) -> Path:
    axes.set_title(title)
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    plt.close(figure)
    return file
