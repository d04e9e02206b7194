"""The options that benchmarks of the real engine share. Imports no torch."""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path


def model_parser(text: str | None, dtype: str | None = "auto") -> argparse.ArgumentParser:
    """`text` is a module's docstring; its first line describes the command. No --dtype without a default."""
    parser = argparse.ArgumentParser(description=text.splitlines()[0] if text else None)
    home = Path(os.environ.get("OCTAVO_HOME", "var"))
    model_dir = os.environ.get("OCTAVO_MODEL_DIR", home / "models" / "smollm2-135m-instruct")
    parser.add_argument("--model-dir", type=Path, default=model_dir)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    if dtype is not None:
        parser.add_argument("--dtype", default=dtype)
    return parser


def clock_for(threads: int) -> Callable[[], float]:
    """Seconds: on one thread those it computed, whatever else this machine does; else those that passed."""
    return time.thread_time if threads == 1 else time.perf_counter
