"""An engine without its server: the real scheduler and a real model runner, stepped by hand.

harness = EngineHarness(RecordingRunner.load(folder, num_blocks=64))
alone = harness.add([5, 6, 7], max_tokens=8)
harness.run()
alone.token_ids, alone.logits
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from inference_engine.contract.codes import FinishReason
from inference_engine.contract.events import Accepted, TokenLogprobs
from inference_engine.contract.requests import Generate
from inference_engine.contract.sampling import SamplingParams
from inference_engine.execution.model_runner import ModelRunner
from inference_engine.execution.steps.step_inputs import StepInputs
from inference_engine.scheduling.output_matcher import OutputMatcher
from inference_engine.scheduling.request import Request
from inference_engine.scheduling.scheduler import Scheduler, SchedulerConfig
from inference_engine.scheduling.step_plan import StepPlan, StepResult

MAX_STEPS = 5000


class RecordingRunner(ModelRunner):
    """Keeps the logits of its last step, and can lay the blocks out in another order than the scheduler."""

    block_order: list[int] | None = None
    last_logits: Tensor | None = None

    def shuffle_blocks(self, seed: int) -> None:
        self.block_order = random.Random(seed).sample(range(self.num_blocks), self.num_blocks)

    def run(self, plan: StepPlan) -> StepResult:
        return super().run(plan if self.block_order is None else self._shuffled(plan))

    def _logits(self, inputs: StepInputs) -> Tensor:
        self.last_logits = super()._logits(inputs)
        return self.last_logits

    def _shuffled(self, plan: StepPlan) -> StepPlan:
        assert self.block_order is not None
        order = self.block_order
        chunks = [
            type(chunk)(
                chunk.request,
                chunk.start,
                chunk.token_ids,
                [order[b] for b in chunk.block_table],
                chunk.samples,
            )
            for chunk in plan.chunks
        ]
        return StepPlan(plan.step, chunks, [(order[a], order[b]) for a, b in plan.copies])


@dataclass
class Trace:
    """What became of one request."""

    accepted: Accepted
    request: Request
    token_ids: list[int] = field(default_factory=list)
    rows: list[Tensor] = field(default_factory=list)
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    finish: FinishReason | None = None
    prompt_logprobs: list[TokenLogprobs] | None = None

    @property
    def logits(self) -> Tensor:
        """fp32 [sampled tokens, vocab]."""
        return torch.stack(self.rows)


class EngineHarness:
    def __init__(
        self, runner: RecordingRunner, *, end_ids: frozenset[int] = frozenset(), **settings: Any
    ) -> None:
        """settings: fields of SchedulerConfig that differ from the runner's own limits."""
        self.runner = runner
        defaults = {
            "num_blocks": runner.num_blocks,
            "max_running": runner.limits.max_running,
            "max_step_tokens": runner.limits.max_step_tokens,
            "context_length": runner.model.context_length,
            "vocab_size": runner.model.vocab_size,
            "cache_secret": b"harness",
            "end_ids": end_ids,
        }
        self.scheduler = Scheduler(SchedulerConfig(**{**defaults, **settings}))
        self.traces: dict[str, Trace] = {}
        self.in_flight: list[tuple[StepPlan, StepResult, Tensor]] = []

    @classmethod
    def on_fresh_pool(cls, loaded: RecordingRunner, num_blocks: int = 64, **settings: Any) -> "EngineHarness":
        """The loaded model again, with a KV pool of its own that nobody has used."""
        runner = RecordingRunner(loaded.model, loaded.backend, loaded.limits, num_blocks=num_blocks)
        return cls(runner, **settings)

    def add(
        self,
        prompt_ids: Sequence[int],
        *,
        tenant_id: str = "alice",
        seed: int = 0,
        choice: int = 0,
        group_id: str = "",
        output_ids: Sequence[int] = (),
        matcher: OutputMatcher | None = None,
        **sampling: Any,
    ) -> Trace:
        """Greedy unless `sampling` says otherwise. `matcher` has consumed the output ids."""
        params = SamplingParams(seed=seed, **{"temperature": 0.0, **sampling})
        generate = Generate(
            request_id=f"request-{len(self.traces)}",
            prompt_ids=list(prompt_ids),
            output_ids=list(output_ids),
            sampling=params,
            choice=choice,
            group_id=group_id,
            tenant_id=tenant_id,
        )
        accepted = self.scheduler.add(generate, matcher)
        assert isinstance(accepted, Accepted), accepted
        trace = Trace(accepted, self.scheduler.requests[generate.request_id])
        self.traces[generate.request_id] = trace
        return trace

    def step(self) -> bool:
        """Plan and run one step, apply what the lag allows. False: there was nothing left to do."""
        plan = self.scheduler.plan()
        if plan is not None:
            result = self.runner.run(plan)
            assert self.runner.last_logits is not None
            self.in_flight.append((plan, result, self.runner.last_logits))
        while len(self.in_flight) > (self.scheduler.config.lag if plan is not None else 0):
            self._apply(*self.in_flight.pop(0))
        return self.scheduler.has_work()

    def run(self) -> None:
        """Step until every request has ended; the blocks must all come back."""
        for _ in range(MAX_STEPS):
            if not self.step():
                self.scheduler.check_integrity()
                return
        raise AssertionError(f"work left after {MAX_STEPS} steps")

    def _apply(self, plan: StepPlan, result: StepResult, logits: Tensor) -> None:
        counts = [chunk.num_sampled for chunk in plan.chunks]
        names = [chunk.request.request_id for chunk in plan.chunks]
        rows_of = dict(zip(names, logits.split(counts), strict=True))
        for update in self.scheduler.apply(plan, result):
            trace = self.traces[update.request.request_id]
            trace.token_ids += update.token_ids
            trace.logprobs += update.logprobs or []
            is_cut = update.finish in (FinishReason.STOP, FinishReason.FAILED)
            trace.rows += rows_of[update.request.request_id][: len(update.token_ids) + is_cut]
            trace.finish = update.finish
            if update.prompt_logprobs is not None:
                assert trace.prompt_logprobs is None
                trace.prompt_logprobs = update.prompt_logprobs
