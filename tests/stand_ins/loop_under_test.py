"""The engine's loop with the real scheduler and a fake runner, driven as by sessions, but no sockets."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from inference_engine.contract.events import Accepted, Delta, EngineMessage, Finished, Refused
from inference_engine.contract.requests import GatewayMessage, Generate
from inference_engine.contract.sampling import SamplingParams
from inference_engine.scheduling.scheduler import Scheduler, SchedulerConfig
from inference_engine.scheduling.step_plan import StepPlan, StepResult
from inference_engine.serving.inbox import Received, SessionClosed, SessionOpened
from inference_engine.serving.loop import EngineLoop, Listeners
from inference_engine.serving.orphans import OrphanUsage
from inference_engine.serving.outbox import Outbox
from inference_engine.simulation.fake_runner import FakeRunner
from servers_of_tests import wait_until
from stand_ins.tiny_model import CONTEXT_LENGTH, END_ID, VOCAB_SIZE

CEILING_S = 60.0


def generate(request_id: str = "r", prompt: int | Sequence[int] = 4, **fields: Any) -> Generate:
    """`prompt`: ids, or how many. Sampling fields may be given by name as well."""
    ids = [1 + i % 200 for i in range(prompt)] if isinstance(prompt, int) else list(prompt)
    names = set(SamplingParams.__struct_fields__)
    sampling = {"seed": 7, "max_tokens": 8, **{name: fields.pop(name) for name in names & fields.keys()}}
    return Generate(
        request_id=request_id,
        prompt_ids=ids,
        sampling=SamplingParams(**sampling),
        tenant_id=fields.pop("tenant_id", "alice"),
        **fields,
    )


def scheduler(**changes: Any) -> Scheduler:
    settings: dict[str, Any] = {
        "num_blocks": 64,
        "max_running": 16,
        "context_length": CONTEXT_LENGTH,
        "vocab_size": VOCAB_SIZE,
        "cache_secret": b"secret",
        "end_ids": frozenset([END_ID]),
    }
    return Scheduler(SchedulerConfig(**{**settings, **changes}))


def fake_runner(num_blocks: int = 64, **changes: Any) -> FakeRunner:
    return FakeRunner(num_blocks=num_blocks, vocab_size=VOCAB_SIZE, avoid_ids=[END_ID], **changes)


class StepGate:
    """Lets a fake run exactly as many steps as it is granted, so that a test decides what happens when."""

    def __init__(self, runner: FakeRunner) -> None:
        self._runner = runner
        self._permits = threading.Semaphore(0)
        self.num_blocks = runner.num_blocks
        self.num_begun = 0
        self.is_open = False

    def run(self, plan: StepPlan) -> StepResult:
        self.num_begun += 1
        if not self.is_open:
            assert self._permits.acquire(timeout=CEILING_S), "no step was granted"
        return self._runner.run(plan)

    def grant(self, steps: int = 1) -> None:
        self._permits.release(steps)

    def open(self) -> None:
        self.is_open = True
        self._permits.release(1000)

    def shut(self) -> None:
        """As at first, between steps."""
        self.is_open = False
        while self._permits.acquire(blocking=False):
            pass


class LoopUnderTest:
    def __init__(self, runner: Any = None, *, lag: int = 0, compiler: Any = None, **config: Any) -> None:
        self.scheduler = scheduler(lag=lag, **config)
        self.runner = runner or fake_runner(self.scheduler.config.num_blocks)
        self.orphans: list[OrphanUsage] = []
        self.deaths: list[BaseException] = []
        self.num_wakes = 0
        self.on_wake: Callable[[list[Outbox]], None] = lambda outboxes: None
        self._num_sessions = 0
        listeners = Listeners(wake=self._wake, orphans=self.orphans.extend, died=self.deaths.append)
        self.loop = EngineLoop(self.scheduler, self.runner, listeners, lag=lag, compiler=compiler)

    def _wake(self, outboxes: list[Outbox]) -> None:
        self.num_wakes += 1
        self.on_wake(outboxes)

    def start(self) -> None:
        self.loop.start()

    def stop(self) -> None:
        if isinstance(self.runner, StepGate):
            self.runner.open()
        self.loop.stop(CEILING_S)

    def session(self, *, max_frames: int = 100_000, max_tokens: int = 10_000_000) -> "SessionUnderTest":
        self._num_sessions += 1
        outbox = Outbox(self._num_sessions, max_frames=max_frames, max_tokens=max_tokens)
        self.loop.inbox.put(SessionOpened(outbox))
        return SessionUnderTest(self, outbox)

    def wait_idle(self) -> None:
        wait_until(lambda: not self.loop.progress().has_work, "the loop is idle", CEILING_S)

    def blocks_in_use(self) -> int:
        stats = self.loop.progress().stats
        return stats.blocks_total - stats.blocks_free - stats.blocks_cached


class SessionUnderTest:
    def __init__(self, owner: LoopUnderTest, outbox: Outbox) -> None:
        self._owner = owner
        self.outbox = outbox
        self.messages: list[EngineMessage] = []
        self.steps: list[int] = []

    def send(self, *messages: GatewayMessage, received_at: float = 0.0) -> None:
        """As in one frame: the loop takes all of them in one turn."""
        session_id = self.outbox.session_id
        self._owner.loop.inbox.put(*(Received(session_id, message, received_at) for message in messages))

    def close(self) -> None:
        self._owner.loop.inbox.put(SessionClosed(self.outbox.session_id))

    def read(self) -> list[EngineMessage]:
        """Everything sent so far."""
        while (batch := self.outbox.take()) is not None:
            self.messages += batch.messages
            self.steps.append(batch.step)
        return self.messages

    def wait_for(self, condition: Callable[[list[EngineMessage]], Any], what: str) -> None:
        wait_until(lambda: bool(condition(self.read())), what, CEILING_S)

    def wait_finished(self, *request_ids: str) -> None:
        self.wait_for(lambda _: all(self.ending(each) for each in request_ids), f"{request_ids} ended")

    def about(self, request_id: str, kind: type[Any]) -> list[Any]:
        return [m for m in self.read() if isinstance(m, kind) and m.request_id == request_id]

    def accepted(self, request_id: str) -> Accepted | None:
        return next(iter(self.about(request_id, Accepted)), None)

    def tokens(self, request_id: str) -> list[int]:
        return [token for delta in self.about(request_id, Delta) for token in delta.token_ids]

    def ending(self, request_id: str) -> Finished | Refused | None:
        endings = self.about(request_id, Finished) + self.about(request_id, Refused)
        assert len(endings) <= 1, f"{request_id} ended twice"
        return next(iter(endings), None)


@contextmanager
def running(runner: Any = None, **config: Any) -> Iterator[LoopUnderTest]:
    under_test = LoopUnderTest(runner, **config)
    under_test.start()
    yield under_test
    under_test.stop()
    assert under_test.deaths == []
    under_test.scheduler.check_integrity()
