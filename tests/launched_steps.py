"""Requests through the real scheduler and the pipeline that the serving loop uses, for any runner and lag."""

from collections.abc import Iterable, Sequence
from typing import Any

from inference_engine.contract.events import Accepted
from inference_engine.contract.requests import Generate
from inference_engine.contract.sampling import SamplingParams
from inference_engine.execution.model_runner import ModelRunner
from inference_engine.scheduling.scheduler import Scheduler, SchedulerConfig
from inference_engine.serving.pipeline import Pipeline, make_pipeline

MAX_TURNS = 2000
Order = tuple[Sequence[int], dict[str, Any]]
"""Prompt and sampling."""


def generate(runner: ModelRunner, orders: Iterable[Order], *, lag: int, **settings: Any) -> list[list[int]]:
    """Output ids of each order, all of them in the engine together."""
    config = {
        "num_blocks": runner.num_blocks,
        "max_running": runner.limits.max_running,
        "max_step_tokens": runner.limits.max_step_tokens,
        "context_length": runner.model.context_length,
        "vocab_size": runner.model.vocab_size,
        "cache_secret": b"launched",
        "lag": lag,
    }
    scheduler = Scheduler(SchedulerConfig(**{**config, **settings}))
    outputs: dict[str, list[int]] = {}
    for number, (prompt, sampling) in enumerate(orders):
        params = SamplingParams(**{"seed": number, "temperature": 0.0, **sampling})
        request = Generate(request_id=str(number), prompt_ids=list(prompt), sampling=params, tenant_id="t")
        assert isinstance(scheduler.add(request), Accepted)
        outputs[request.request_id] = []
    pipeline = make_pipeline(runner, lag)
    try:
        _turn_until_idle(scheduler, pipeline, outputs)
    finally:
        pipeline.close()
    scheduler.check_integrity()
    return list(outputs.values())


def _turn_until_idle(scheduler: Scheduler, pipeline: Pipeline, outputs: dict[str, list[int]]) -> None:
    for _ in range(MAX_TURNS):
        done = pipeline.advance(scheduler.plan())
        if done is not None:
            assert done.error is None and done.result is not None, done.error
            for update in scheduler.apply(done.plan, done.result):
                outputs[update.request.request_id] += update.token_ids
        elif not scheduler.has_work():
            return
    raise AssertionError(f"work left after {MAX_TURNS} turns")
