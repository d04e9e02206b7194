from benchmarks.chat_work import ChatRequest
from benchmarks.closed_loop import ClosedLoop
from inference_engine.scheduling.scheduler import Scheduler, SchedulerConfig
from inference_engine.scheduling.step_plan import StepPlan, StepResult
from inference_engine.simulation.fake_runner import FakeRunner

WORK = [ChatRequest([5, 6, 7 + index], 1 + index % 5) for index in range(20)]


class WatchedRunner(FakeRunner):
    most_at_once = 0

    def run(self, plan: StepPlan) -> StepResult:
        self.most_at_once = max(self.most_at_once, len(plan.chunks))
        return super().run(plan)


def test_all_work_is_done_and_never_more_at_once_than_asked_for() -> None:
    runner = WatchedRunner(num_blocks=100, vocab_size=100)
    config = SchedulerConfig(
        num_blocks=100, max_running=16, context_length=64, vocab_size=100, cache_secret=b"test"
    )
    loop = ClosedLoop(Scheduler(config), runner, concurrency=3)
    try:
        done = loop.run(WORK)
    finally:
        loop.close()
    assert done.output_tokens == sum(request.max_tokens for request in WORK)
    assert 1 < runner.most_at_once <= 3
