"""Running planned steps: in the loop's thread (lag 0), or in another so that planning overlaps (lag 1)."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from inference_engine.scheduling.step_plan import StepPlan, StepResult

from .runner import LaunchedStep, LaunchingRunner, Runner


@dataclass(frozen=True, slots=True)
class CompletedStep:
    plan: StepPlan
    result: StepResult | None
    error: Exception | None
    seconds: float


class Pipeline(Protocol):
    def advance(self, plan: StepPlan | None) -> CompletedStep | None:
        """Start this plan, if any; returns the step that must be applied now, if any."""

    def close(self) -> None: ...


class InlinePipeline:
    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def advance(self, plan: StepPlan | None) -> CompletedStep | None:
        return None if plan is None else _run(self._runner, plan)

    def close(self) -> None:
        """Nothing is ever left running."""


class OverlappedPipeline:
    """One step runs while the next is planned; the runner resolves PENDING_TOKEN from the step before."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="octavo-runner")
        self._running: Future[CompletedStep] | None = None

    def advance(self, plan: StepPlan | None) -> CompletedStep | None:
        before = self._running
        self._running = None if plan is None else self._thread.submit(_run, self._runner, plan)
        return None if before is None else before.result()

    def close(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)


class LaunchingPipeline:
    """The same without a thread: the device runs one step while the host plans and launches the next."""

    def __init__(self, runner: LaunchingRunner) -> None:
        self._runner = runner
        self._running: Callable[[], CompletedStep] | None = None
        self._ended_at = 0.0

    def advance(self, plan: StepPlan | None) -> CompletedStep | None:
        before = self._running
        self._running = None if plan is None else self._launch(plan)
        return None if before is None else before()

    def close(self) -> None:
        """What was launched is let go of."""
        self._running = None

    def _launch(self, plan: StepPlan) -> Callable[[], CompletedStep]:
        started = time.perf_counter()
        try:
            launched = self._runner.launch(plan)
        except Exception as failure:
            failed = CompletedStep(plan, None, failure, time.perf_counter() - started)
            return lambda: failed
        return lambda: self._fetch(plan, launched, started)

    def _fetch(self, plan: StepPlan, launched: LaunchedStep, started: float) -> CompletedStep:
        """A step begins when it is launched, or when the one before has ended."""
        started = max(started, self._ended_at)
        try:
            result, error = launched.result(), None
        except Exception as failure:
            result, error = None, failure
        self._ended_at = time.perf_counter()
        return CompletedStep(plan, result, error, self._ended_at - started)


def make_pipeline(runner: Runner, lag: int) -> Pipeline:
    if not lag:
        return InlinePipeline(runner)
    return LaunchingPipeline(runner) if isinstance(runner, LaunchingRunner) else OverlappedPipeline(runner)


def _run(runner: Runner, plan: StepPlan) -> CompletedStep:
    started = time.perf_counter()
    try:
        result, error = runner.run(plan), None
    except Exception as failure:  # whatever it is, it fails this step's requests and nothing else
        result, error = None, failure
    return CompletedStep(plan, result, error, time.perf_counter() - started)
