"""A model on a GPU: a step is launched, and its tokens are fetched when the next step has been launched too.

    host      plan 1, launch 1 | plan 2, launch 2 | fetch 1, apply 1, plan 3, launch 3 | fetch 2 ...
    device                     [ step 1          ][ step 2                            ][ step 3 ...

Tokens that a launched step needs from the one before are taken from there on the device. That works where
the device itself chooses the tokens, which it does for greedy rows without logprobs, penalties, drafts or
masks. A step with any other row is sampled on the host by the same code as everywhere; launching such a step
waits for its tokens.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from inference_engine.contract.codes import Code
from inference_engine.execution.attention.select import choose_backend
from inference_engine.execution.device.decode_graphs import DecodeGraphs, can_be_recorded, record_on_cuda
from inference_engine.execution.device.input_staging import NO_SOURCE, DeviceInputs, InputStaging, host_parts
from inference_engine.execution.device.placement import (
    GPU_POOL_FRACTION,
    find_device,
    free_memory,
    gpu_dtype,
    select_device,
)
from inference_engine.execution.memory.kv_memory import PoolBudget
from inference_engine.execution.model_runner import ModelRunner, RunnerLimits
from inference_engine.execution.models.invariance_probe import ProbeReport, Progress
from inference_engine.execution.models.model_loading import load_model
from inference_engine.execution.sampling.adjustments import needs_adjustment
from inference_engine.execution.steps.step_inputs import PADDING_ID, StepInputs, build_inputs
from inference_engine.scheduling.request import Request
from inference_engine.scheduling.step_plan import (
    PENDING_TOKEN,
    SampledToken,
    ScheduledChunk,
    StepPlan,
    StepResult,
)


@dataclass(slots=True)
class LaunchedStep:
    """A step whose tokens the device chooses: int64 [S], and bool [S] whether their logits are finite."""

    plan: StepPlan
    tokens: Tensor
    finite: Tensor
    host_tokens: Tensor
    host_finite: Tensor
    is_done: "torch.cuda.Event | None"
    rows: dict[Request, int]
    """Where the token of each request is that sampled."""
    _result: StepResult | None = field(default=None)

    def result(self) -> StepResult:
        """Waits for the device, the first time."""
        if self._result is None:
            if self.is_done is not None:
                self.is_done.synchronize()
            rows = iter(zip(self.host_tokens.tolist(), self.host_finite.tolist(), strict=True))
            self._result = StepResult(
                [_sampled(*next(rows)) if chunk.samples else None for chunk in self.plan.chunks]
            )
        return self._result


@dataclass(frozen=True, slots=True)
class HostSampledStep:
    plan: StepPlan
    _result: StepResult

    def result(self) -> StepResult:
        return self._result


class DeviceRunner(ModelRunner):
    """Runs wherever its backend's device is; on a CPU without pinned memory and graphs, for tests."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._staging = InputStaging(self.backend.device)
        self._graphs: DecodeGraphs | None = None
        self._launched: LaunchedStep | None = None
        """The last step, where its tokens are on the device."""

    @classmethod
    def load(
        cls,
        model_dir: Path,
        *,
        device: str = "cuda",
        backend: str = "auto",
        split_kv: bool = False,
        dtype: str = "auto",
        context_length: int | None = None,
        kv_bytes: int | None = None,
        num_blocks: int | None = None,
        max_running: int = 64,
        max_step_tokens: int = 512,
        threads: int | None = None,
    ) -> Self:
        """Load a model directory to a GPU. Raises UnsupportedModel, UnsupportedAttention or ValueError."""
        if threads is not None:
            torch.set_num_threads(threads)
        chosen = choose_backend(backend, find_device(device), split_kv=split_kv)
        select_device(chosen.device)
        model = load_model(model_dir, gpu_dtype(dtype), chosen, context_length)
        limits = RunnerLimits(max_running=max_running, max_step_tokens=max_step_tokens)
        budget = PoolBudget(
            num_blocks=num_blocks,
            pool_bytes=kv_bytes,
            allowed_bytes=free_memory(chosen.device),
            fraction=GPU_POOL_FRACTION,
        )
        return cls._within(budget, model_dir, model, chosen, limits)

    def warm(self, progress: Progress = lambda done, total: None) -> ProbeReport:
        select_device(self.backend.device)
        report = super().warm(progress)
        if self.backend.device.type == "cuda" and can_be_recorded(self.model.module):
            with torch.inference_mode():
                self.record_decodes()
        return report

    def record_decodes(self) -> None:
        self._graphs = DecodeGraphs(
            self.model.module,
            self.backend,
            self.pool.layers,
            max_running=self.limits.max_running,
            context_length=self.model.context_length,
            record=record_on_cuda() if self.backend.device.type == "cuda" else lambda forward: forward,
        )

    def run(self, plan: StepPlan) -> StepResult:
        return self.launch(plan).result()

    @torch.inference_mode()
    def launch(self, plan: StepPlan) -> LaunchedStep | HostSampledStep:
        """Start a step. The one before may still run, and its result need not have been asked for."""
        select_device(self.backend.device)
        before, self._launched = self._launched, None
        if not all(is_chosen_on_device(chunk) for chunk in plan.chunks):
            if before is not None:
                self._pending.remember(before.plan, before.result())
            return HostSampledStep(plan, super().run(plan))
        self.pool.copy_blocks(plan.copies)
        inputs, sources = self._inputs_on_host(plan, before)
        logits = self._device_logits(inputs, sources, before)
        self._pending.forget()
        self._launched = self._choose(plan, logits)
        return self._launched

    def _inputs_on_host(self, plan: StepPlan, before: LaunchedStep | None) -> tuple[StepInputs, Tensor]:
        """Inputs, and for each row the row of the step before that its token is still in."""
        token_ids: list[list[int]] = []
        sources: dict[int, int] = {}
        num_rows = 0
        for chunk in plan.chunks:
            num_rows += len(chunk.token_ids)
            row = before.rows.get(chunk.request) if before is not None else None
            if row is not None and chunk.token_ids[-1] == PENDING_TOKEN:
                token_ids.append([*chunk.token_ids[:-1], PADDING_ID])
                sources[num_rows - 1] = row
            else:
                token_ids.append(self._pending.resolve(chunk))
        inputs = build_inputs(plan.chunks, token_ids, [None] * len(plan.chunks))
        return inputs, _sources_of_rows(sources, inputs.metadata.num_rows)

    def _logits(self, inputs: StepInputs) -> Tensor:
        sources = _sources_of_rows({}, inputs.metadata.num_rows)
        return self._device_logits(inputs, sources, None).cpu()

    def _device_logits(self, inputs: StepInputs, sources: Tensor, before: LaunchedStep | None) -> Tensor:
        """fp32 [S, vocab] on the device."""
        tokens = None if before is None or not len(before.tokens) else before.tokens
        if self._graphs is not None and self._graphs.takes(inputs):
            self._prompt_scores = {}
            return self._graphs.logits(inputs, sources, self._staging, tokens)
        parts = [*host_parts(inputs.token_ids, sources, inputs.metadata), inputs.sampled_rows]
        *moved, sampled_rows = self._staging.send(parts)
        on_device = DeviceInputs(*moved)
        if tokens is not None:
            on_device.take_tokens(tokens)
        return super()._logits(
            replace(
                inputs,
                token_ids=on_device.token_ids.long(),
                metadata=on_device.metadata(),
                sampled_rows=sampled_rows.long(),
            )
        )

    def _choose(self, plan: StepPlan, logits: Tensor) -> LaunchedStep:
        tokens, finite = logits.argmax(-1), torch.isfinite(logits).all(-1)
        sampling = (chunk.request for chunk in plan.chunks if chunk.samples)
        rows = {request: row for row, request in enumerate(sampling)}
        if logits.device.type != "cuda":
            return LaunchedStep(plan, tokens, finite, tokens, finite, None, rows)
        host_tokens, host_finite = (
            torch.empty(each.shape, dtype=each.dtype, pin_memory=True).copy_(each, non_blocking=True)
            for each in (tokens, finite)
        )
        is_done = torch.cuda.Event()
        is_done.record()
        return LaunchedStep(plan, tokens, finite, host_tokens, host_finite, is_done, rows)


def _sources_of_rows(sources: dict[int, int], num_rows: int) -> Tensor:
    found = torch.full((num_rows,), NO_SOURCE, dtype=torch.int32)
    for row, source in sources.items():
        found[row] = source
    return found


def is_chosen_on_device(chunk: ScheduledChunk) -> bool:
    """Whether the device can choose what this chunk samples, if it samples anything."""
    params = chunk.request.sampling
    if params.prompt_logprobs is not None:
        return False
    is_plain = not (params.temperature or params.min_tokens or params.bad_words_ids or chunk.num_drafts)
    has_extras = params.logprobs is not None or chunk.request.matcher is not None or needs_adjustment(chunk)
    return not chunk.samples or (is_plain and not has_extras)


def _sampled(token_id: int, is_finite: bool) -> SampledToken:
    return (
        SampledToken(token_id) if is_finite else SampledToken(PENDING_TOKEN, failure=Code.NON_FINITE_LOGITS)
    )
