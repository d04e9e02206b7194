"""Continuous batching: the engine's own scheduler, requests joining whenever they arrive."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.chat_work import ChatRequest
from benchmarks.scheme.engine import Engine, greedy
from benchmarks.scheme.record import Run, Step, Timeline
from inference_engine.contract.events import Refused
from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.scheduling.scheduler import Scheduler
from inference_engine.scheduling.step_plan import StepPlan


@dataclass(frozen=True, slots=True)
class Arrival:
    at: float
    request: ChatRequest


def run_continuous(
    engine: Engine,
    arrivals: Sequence[Arrival],
    on_token: Callable[[], None],
    *,
    reserved_each: int | None = None,
    **settings: Any,
) -> Run:
    """reserved_each: KV slots that a request holds from its first step to its last, whatever it uses;
    None: the blocks that it has been given. settings: of the scheduler."""
    run, scheduler = Run(), engine.scheduler(**settings)
    waiting = deque(enumerate(arrivals))
    started_at = time.perf_counter()
    while waiting or scheduler.has_work():
        now = time.perf_counter() - started_at
        while waiting and waiting[0][1].at <= now:
            _add(scheduler, run, *waiting.popleft())
        plan = scheduler.plan()
        if plan is None:
            time.sleep(max(0.0, waiting[0][1].at - now))
            continue
        result = engine.runner.run(plan)
        run.steps.append(_step(scheduler, plan, reserved_each))
        now = time.perf_counter() - started_at
        for update in scheduler.apply(plan, result):
            timeline = run.timelines[int(update.request.request_id)]
            timeline.tokens_at += [now] * len(update.token_ids)
            for _ in update.token_ids:
                on_token()
    run.seconds = time.perf_counter() - started_at
    return run


def _add(scheduler: Scheduler, run: Run, index: int, arrival: Arrival) -> None:
    answer = scheduler.add(greedy(str(index), arrival.request))
    assert not isinstance(answer, Refused), answer
    run.timelines.append(Timeline(arrival.at))


def _step(scheduler: Scheduler, plan: StepPlan, reserved_each: int | None) -> Step:
    running = list(scheduler.roster.running.values())
    blocks = sum(len(request.block_table) for request in running)
    return Step(
        num_tokens=plan.num_tokens,
        places=scheduler.config.max_running,
        busy=len(plan.chunks),
        reserved_slots=blocks * BLOCK_SIZE if reserved_each is None else len(running) * reserved_each,
        used_slots=sum(min(request.num_known, len(request.block_table) * BLOCK_SIZE) for request in running),
    )
