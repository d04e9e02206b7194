"""The real runner and a scheduler for it, as an engine process would have them."""

from pathlib import Path
from typing import Any, TypeVar

from inference_engine.execution.model_runner import ModelRunner
from inference_engine.scheduling.scheduler import Scheduler, SchedulerConfig
from inference_engine.serving.rehearsal import rehearse

RunnerT = TypeVar("RunnerT", bound=ModelRunner)


def load_warm(model_dir: Path, dtype: str, threads: int, **limits: Any) -> ModelRunner:
    """A runner whose every shape is warm."""
    return warm(ModelRunner.load(model_dir, dtype=dtype, threads=threads, **limits))


def load_rehearsed(model_dir: Path, dtype: str, threads: int, **limits: Any) -> ModelRunner:
    """A runner that has run full steps; other shapes may be cold where oneDNN multiplies."""
    return rehearsed(ModelRunner.load(model_dir, dtype=dtype, threads=threads, **limits))


def warm(runner: RunnerT) -> RunnerT:
    runner.warm()
    return rehearsed(runner)


def rehearsed(runner: RunnerT) -> RunnerT:
    rehearse(runner, scheduler_config(runner))
    return runner


def scheduler_for(runner: ModelRunner, **settings: Any) -> Scheduler:
    return Scheduler(scheduler_config(runner, **settings))


def scheduler_config(runner: ModelRunner, **settings: Any) -> SchedulerConfig:
    """settings: fields of SchedulerConfig that differ from the runner's own limits."""
    own = {
        "num_blocks": runner.num_blocks,
        "max_running": runner.limits.max_running,
        "max_step_tokens": runner.limits.max_step_tokens,
        "context_length": runner.model.context_length,
        "vocab_size": runner.model.vocab_size,
        "cache_secret": b"benchmark",
    }
    return SchedulerConfig(**{**own, **settings})
