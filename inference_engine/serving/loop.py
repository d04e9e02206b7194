"""The batching loop: take, plan, run, apply, emit, in a thread of its own that alone touches the scheduler.

Commands come in through `Inbox`; what became of them leaves through each session's `Outbox` and one
`wake` a turn. Frames are encoded in the asyncio thread, one C call each: so encoding overlaps with the next
step, which holds no GIL while the device computes.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import structlog
from msgspec import structs

from inference_engine.contract.codes import Code
from inference_engine.contract.events import Pong, Stats
from inference_engine.contract.requests import Abort, GatewayMessage, Generate, Observe, Ping, SetTenantShares
from inference_engine.scheduling.scheduler import Scheduler
from inference_engine.scheduling.step_plan import StepPlan, StepResult

from .compilations import Compilations, CompilesConstraints
from .desk import Desk
from .inbox import (
    Command,
    Compiled,
    Inbox,
    Received,
    Rejected,
    SessionClosed,
    SessionOpened,
    StartDraining,
    Stop,
)
from .mail import Mail
from .metrics import StepMetrics
from .observing import observed_step
from .orphans import OrphanUsage
from .outbox import Outbox
from .pipeline import CompletedStep, make_pipeline
from .progress import Progress
from .runner import Runner
from .runner_health import EngineBroken, RunnerHealth

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Listeners:
    """Called in the loop's thread; each must return at once."""

    wake: Callable[[list[Outbox]], None]
    orphans: Callable[[list[OrphanUsage]], None]
    died: Callable[[BaseException], None]


class EngineLoop:
    def __init__(
        self,
        scheduler: Scheduler,
        runner: Runner,
        listeners: Listeners,
        *,
        lag: int = 0,
        compiler: CompilesConstraints | None = None,
        metrics: StepMetrics | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.inbox = Inbox()
        self._scheduler = scheduler
        self._pipeline = make_pipeline(runner, lag)
        self._listeners = listeners
        self._metrics = metrics
        self._mail = Mail()
        compilations = Compilations(compiler, lambda done: self.inbox.put(Compiled(done)))
        self._desk = Desk(scheduler, self._mail, compilations, clock)
        self._progress = Progress(stats=scheduler.stats())
        self._num_steps = 0
        self._health = RunnerHealth()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="octavo-loop", daemon=True)

    # Any thread.

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        self.inbox.put(Stop())
        self._thread.join(timeout_s)

    def progress(self) -> Progress:
        """Commands not yet taken are work as well: a loop that stalls before them must not look idle."""
        has_commands = len(self.inbox) > 0
        progress = self._progress
        return replace(progress, has_work=progress.has_work or has_commands)

    # The loop's thread.

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                self._turn()
        except BaseException as error:
            log.exception("loop_died")
            self._listeners.died(error)
        finally:
            self._pipeline.close()

    def _turn(self) -> None:
        self._take()
        self._desk.expire()
        plan = self._plan()
        completed = self._pipeline.advance(plan)
        broken = completed is not None and self._apply(completed)
        self._emit()
        if broken:
            raise EngineBroken("the runner failed in steps that follow each other")
        if self._scheduler.has_work():
            self._health.check_moving(plan is not None or completed is not None)
        elif not self._is_stopping:
            self._scheduler.check_integrity()
            self.inbox.wait(self._desk.idle_seconds())

    def _take(self) -> None:
        """Commands in hand are work too, from before they leave the inbox until what they led to is sent."""
        count = len(self.inbox)
        if count:
            self._progress = replace(self._progress, has_work=True)
        for command in self.inbox.take(count):
            self._obey(command)

    def _plan(self) -> StepPlan | None:
        plan = self._scheduler.plan()
        if plan is not None:
            self._health.planned(plan.step)
            self._desk.note_started(plan)
        return plan

    def _apply(self, completed: CompletedStep) -> bool:
        """Returns whether the runner is broken."""
        plan = completed.plan
        self._num_steps += 1
        if completed.result is None:
            return self._apply_failure(completed)
        self._health.succeeded()
        self._desk.deliver(self._scheduler.apply(plan, completed.result))
        self._scheduler.observe_step(plan, completed.seconds)
        self._observe(completed)
        return False

    def _apply_failure(self, completed: CompletedStep) -> bool:
        log.error("step_failed", step=completed.plan.step, exc_info=completed.error)
        failed = StepResult.failed(completed.plan, Code.INTERNAL_ERROR)
        self._desk.deliver(self._scheduler.apply(completed.plan, failed))
        return self._health.failed(completed.plan.step)

    def _observe(self, completed: CompletedStep) -> None:
        if self._metrics is not None:
            self._metrics.observe(completed.plan, completed.seconds)
        observers = self._mail.observers(self._num_steps)
        if not observers:
            return
        observed = observed_step(completed, self._scheduler.blocks_by_tenant())
        for session_id in observers:
            self._mail.post(session_id, observed)

    def _emit(self) -> None:
        """Publish, send, publish the end of work: whoever has a message finds figures that know of it, and
        whoever sees that no work is left finds all mail in the outboxes."""
        has_work = self._scheduler.has_work()
        self._publish(has_work=True)
        outboxes = self._mail.send(self._num_steps, has_work)
        slow = [outbox.session_id for outbox in outboxes if outbox.is_over]
        for session_id in slow:  # loses its requests, not the others'
            self._desk.fail_slow_reader(session_id)
        if slow:
            has_work = self._scheduler.has_work()
            outboxes += self._mail.send(self._num_steps, has_work)
        if slow or not has_work:
            self._publish(has_work=has_work)
        if outboxes:
            self._listeners.wake(outboxes)

    def _publish(self, *, has_work: bool) -> None:
        num_compiling = len(self._desk.compilations)
        self._progress = Progress(self._num_steps, has_work, self._stats(), num_compiling)

    def _stats(self) -> Stats:
        stats = self._scheduler.stats()
        return structs.replace(stats, num_refused=stats.num_refused + self._desk.num_refused)

    def _obey(self, command: Command) -> None:
        match command:
            case SessionOpened(outbox):
                self._mail.open(outbox)
            case SessionClosed(session_id):
                self._listeners.orphans(self._desk.close_session(session_id))
            case Received(session_id, message, received_at) if self._mail.is_open(session_id):
                self._obey_gateway(session_id, message, received_at)
            case Rejected(session_id, refused):
                self._desk.refuse(session_id, refused)
            case Compiled(compilation):
                self._desk.compiled(compilation)
            case StartDraining():
                self._desk.is_draining = True
            case Stop():
                self._is_stopping = True

    def _obey_gateway(self, session_id: int, message: GatewayMessage, received_at: float) -> None:
        match message:
            case Generate():
                self._desk.generate(session_id, message, received_at)
            case Abort():
                self._desk.abort(session_id, message)
            case SetTenantShares(shares=shares):
                self._scheduler.set_tenant_shares(shares)
            case Observe(every=every):
                self._mail.observe(session_id, every)
            case Ping(nonce=nonce):
                self._mail.post(session_id, Pong(nonce=nonce, step=self._num_steps))
