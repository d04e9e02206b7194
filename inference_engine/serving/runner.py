"""What the loop drives: anything that turns a step plan into sampled tokens."""

from typing import Protocol

from inference_engine.scheduling.step_plan import StepPlan, StepResult


class Runner(Protocol):
    @property
    def num_blocks(self) -> int:
        """KV blocks it holds."""

    def run(self, plan: StepPlan) -> StepResult:
        """Compute one step. Raising fails the requests of that step."""
