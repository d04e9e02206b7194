"""The steps before ready."""

from dataclasses import dataclass, field

import pytest

from inference_engine.scheduling.scheduler import SchedulerConfig
from inference_engine.scheduling.step_plan import StepPlan, StepResult
from inference_engine.serving.rehearsal import rehearse
from inference_engine.simulation.fake_runner import FakeRunner, FakeSpeed


@dataclass
class Recorder:
    """A fake runner that remembers the size of its steps."""

    num_blocks: int
    sizes: list[tuple[int, int]] = field(default_factory=list)

    def run(self, plan: StepPlan) -> StepResult:
        self.sizes.append((len(plan.chunks), plan.num_tokens))
        fake = FakeRunner(num_blocks=self.num_blocks, vocab_size=50, avoid_ids=[], speed=FakeSpeed())
        return fake.run(plan)


def config(num_blocks: int) -> SchedulerConfig:
    return SchedulerConfig(
        num_blocks=num_blocks,
        max_running=8,
        max_step_tokens=64,
        context_length=256,
        vocab_size=50,
        cache_secret=b"s",
    )


def test_the_largest_prefill_and_decodes_of_every_place_are_run() -> None:
    runner = Recorder(64)
    assert rehearse(runner, config(64)) == len(runner.sizes)
    assert max(tokens for _, tokens in runner.sizes) == 64
    assert (8, 8) in runner.sizes


@pytest.mark.parametrize("num_blocks", [1, 2, 5])
def test_a_pool_too_small_for_all_places_still_ends(num_blocks: int) -> None:
    runner = Recorder(num_blocks)
    assert rehearse(runner, config(num_blocks)) >= 1
    assert max(chunks for chunks, _ in runner.sizes) <= num_blocks


def test_an_engine_that_can_not_run_a_step_is_not_ready() -> None:
    class Broken(Recorder):
        def run(self, plan: StepPlan) -> StepResult:
            raise RuntimeError("no such kernel")

    with pytest.raises(RuntimeError, match="no such kernel"):
        rehearse(Broken(8), config(8))
