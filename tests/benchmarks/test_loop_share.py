import time
from types import SimpleNamespace
from typing import cast

import pytest

from benchmarks.loop_share import OUTPUTS, PROMPT, Turn, measure
from benchmarks.timed_runner import StepTimes, TurnsRunner
from inference_engine.scheduling.step_plan import StepPlan, StepResult
from inference_engine.simulation.fake_runner import FakeRunner

ROWS = 3


class FakeTurns(FakeRunner):
    """Half of every step is its forward pass."""

    def __init__(self) -> None:
        super().__init__(num_blocks=200, vocab_size=2000)
        self.limits = SimpleNamespace(max_running=ROWS, max_step_tokens=512)
        self.model = SimpleNamespace(context_length=512, vocab_size=2000)
        self.steps: list[StepTimes] = []

    def run(self, plan: StepPlan) -> StepResult:
        started = time.perf_counter()
        result = super().run(plan)
        ended = time.perf_counter()
        num_decodes = len(plan.chunks) if plan.num_tokens == len(plan.chunks) else 0
        self.steps.append(StepTimes(started, ended, (ended - started) / 2, num_decodes))
        return result


def test_turns_are_those_between_two_decodes_of_all_rows() -> None:
    runner = FakeTurns()
    turns = measure(cast(TurnsRunner, runner), ROWS)
    assert OUTPUTS - ROWS - PROMPT // 50 <= len(turns) < OUTPUTS
    assert all(turn.in_loop > 0 and turn.in_runner == pytest.approx(turn.forward) for turn in turns)
    assert all(0.5 <= turn.share < 1 for turn in turns)


def test_the_share_is_what_is_not_the_forward_pass() -> None:
    assert Turn(forward=0.9, in_runner=0.06, in_loop=0.04).share == pytest.approx(0.1)
