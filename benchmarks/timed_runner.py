"""Runners that know how long the forward pass of a step took."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from benchmarks.real_engine import warm
from inference_engine.execution.model_runner import ModelRunner
from inference_engine.execution.steps.step_inputs import StepInputs
from inference_engine.scheduling.step_plan import StepPlan, StepResult


class TimedRunner(ModelRunner):
    clock = staticmethod(time.perf_counter)
    forward_seconds = 0.0
    """Of the last step."""

    def _logits(self, inputs: StepInputs) -> Tensor:
        started = self.clock()
        logits = super()._logits(inputs)
        self.forward_seconds = self.clock() - started
        return logits


@dataclass(frozen=True, slots=True)
class StepTimes:
    started: float
    ended: float
    forward: float
    num_decodes: int
    """0 of a step with prompts."""


class TurnsRunner(TimedRunner):
    """Remembers every step."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.steps: list[StepTimes] = []

    def run(self, plan: StepPlan) -> StepResult:
        started = self.clock()
        result = super().run(plan)
        num_decodes = len(plan.chunks) if plan.num_tokens == len(plan.chunks) else 0
        self.steps.append(StepTimes(started, self.clock(), self.forward_seconds, num_decodes))
        return result


def load_timed(model_dir: Path, dtype: str, threads: int, **limits: Any) -> TimedRunner:
    return warm(TimedRunner.load(model_dir, dtype=dtype, threads=threads, **limits))


def load_turns(model_dir: Path, dtype: str, threads: int, **limits: Any) -> TurnsRunner:
    return warm(TurnsRunner.load(model_dir, dtype=dtype, threads=threads, **limits))
