"""What the loop drives: anything that turns a step plan into sampled tokens."""

from typing import Protocol, runtime_checkable

from inference_engine.scheduling.step_plan import StepPlan, StepResult


class Runner(Protocol):
    @property
    def num_blocks(self) -> int:
        """KV blocks it holds."""

    def run(self, plan: StepPlan) -> StepResult:
        """Compute one step. Raising fails the requests of that step."""


class LaunchedStep(Protocol):
    def result(self) -> StepResult:
        """Waits until the step is done. Raising fails its requests."""


@runtime_checkable
class LaunchingRunner(Protocol):
    """A runner whose device works by itself: one step may run while the next is launched."""

    def launch(self, plan: StepPlan) -> LaunchedStep:
        """Start one step."""
