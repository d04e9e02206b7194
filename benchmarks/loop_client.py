"""The engine's loop in this process, with sessions and no sockets: what is asked of it, and what it says."""

import time
from collections.abc import Callable

from inference_engine.contract.events import EngineMessage
from inference_engine.contract.requests import GatewayMessage
from inference_engine.scheduling.scheduler import Scheduler
from inference_engine.scheduling.step_plan import StepPlan, StepResult
from inference_engine.serving.inbox import Received, SessionClosed, SessionOpened
from inference_engine.serving.loop import EngineLoop, Listeners
from inference_engine.serving.outbox import Outbox
from inference_engine.serving.runner import Runner

STOP_S = 30.0


class StepTimes:
    """A runner, and how long its steps took."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.num_blocks = runner.num_blocks
        self.seconds: list[float] = []

    def run(self, plan: StepPlan) -> StepResult:
        started = time.perf_counter()
        result = self._runner.run(plan)
        self.seconds.append(time.perf_counter() - started)
        return result


class LoopClient:
    def __init__(
        self, scheduler: Scheduler, runner: Runner, heard: Callable[[int, EngineMessage], None]
    ) -> None:
        """`heard` gets (session, message) in the loop's thread, and must return at once."""
        self._heard = heard
        self.deaths: list[BaseException] = []
        listeners = Listeners(wake=self._wake, orphans=lambda orphans: None, died=self.deaths.append)
        self.loop = EngineLoop(scheduler, runner, listeners)
        self.loop.start()

    def open(self, session: int) -> None:
        outbox = Outbox(session, max_frames=1_000_000, max_tokens=100_000_000)
        self.loop.inbox.put(SessionOpened(outbox))

    def close(self, session: int) -> None:
        self.loop.inbox.put(SessionClosed(session))

    def send(self, session: int, message: GatewayMessage) -> None:
        self.loop.inbox.put(Received(session, message, time.monotonic()))

    def stop(self) -> None:
        self.loop.stop(STOP_S)
        if self.deaths:
            raise self.deaths[0]

    def _wake(self, outboxes: list[Outbox]) -> None:
        for outbox in outboxes:
            while (batch := outbox.take()) is not None:
                for message in batch.messages:
                    self._heard(outbox.session_id, message)
