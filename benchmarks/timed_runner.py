"""A runner that knows how long the forward pass of its last step took."""

import time
from pathlib import Path
from typing import Any

from torch import Tensor

from benchmarks.real_engine import warm
from inference_engine.execution.model_runner import ModelRunner
from inference_engine.execution.steps.step_inputs import StepInputs


class TimedRunner(ModelRunner):
    clock = staticmethod(time.perf_counter)
    forward_seconds = 0.0

    def _logits(self, inputs: StepInputs) -> Tensor:
        started = self.clock()
        logits = super()._logits(inputs)
        self.forward_seconds = self.clock() - started
        return logits


def load_timed(model_dir: Path, dtype: str, threads: int, **limits: Any) -> TimedRunner:
    return warm(TimedRunner.load(model_dir, dtype=dtype, threads=threads, **limits))
