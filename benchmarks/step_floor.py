"""One step of the engine, and a floor to compare it with.

A step is one call of the runner, greedy sampling included. Its floor is every matrix product of that step by
oneDNN, with weights packed in the model's dtype, at the step's own row count, the head at the sampled rows
only, and nothing in between: a ratio below 1 means that our own products are the faster ones. Steps and
floors take turns and each is the minimum of its repetitions; on a shared machine only the ratio counts.
"""

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.contract.requests import Generate
from inference_engine.contract.sampling import SamplingParams
from inference_engine.execution.model_runner import ModelRunner
from inference_engine.execution.products.linear import PackedLinear, pack_weight
from inference_engine.execution.products.row_buckets import row_bucket
from inference_engine.scheduling.request import Request
from inference_engine.scheduling.step_plan import ScheduledChunk, StepPlan

CONTEXT = 200
"""Tokens that a decode sees, its own included."""
PAUSE_S = 0.02
"""Between measurements: on a shared machine the other processes get their turn now, not in the middle."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Decodes of one row each, then one prompt chunk from position 0."""

    num_decodes: int
    num_prefill: int = 0

    @property
    def num_sequences(self) -> int:
        return self.num_decodes + (self.num_prefill > 0)

    @property
    def num_rows(self) -> int:
        return self.num_decodes + self.num_prefill


SHAPES = {
    "row1": Shape(1),
    "decode16": Shape(16),
    "decode64": Shape(64),
    "prefill256": Shape(0, 256),
    "mixed15_128": Shape(15, 128),
}
BLOCKS_EACH = -(-max(CONTEXT, *(shape.num_prefill for shape in SHAPES.values())) // BLOCK_SIZE)


def load_runner(model_dir: Path, dtype: str, threads: int) -> ModelRunner:
    num_blocks = BLOCKS_EACH * max(shape.num_sequences for shape in SHAPES.values())
    return ModelRunner.load(model_dir, dtype=dtype, threads=threads, num_blocks=num_blocks)


@torch.inference_mode()
def measure(runner: ModelRunner, shape: Shape, repetitions: int) -> tuple[float, float]:
    """Seconds of a step and of its floor."""
    plan = step_plan(shape, runner.model.vocab_size)
    step, floor = fastest([lambda: runner.run(plan), floor_of(runner, shape)], repetitions)
    return step, floor


def fastest(
    acts: list[Callable[[], object]], repetitions: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Seconds of each at its best; they take turns."""
    times: list[list[float]] = [[] for _ in acts]
    for _ in range(repetitions + 2):  # the first two warm up
        for kept, act in zip(times, acts, strict=True):
            time.sleep(PAUSE_S)
            kept.append(_seconds(act, clock))
    return [min(kept[2:]) for kept in times]


def floor_of(runner: ModelRunner, shape: Shape) -> Callable[[], None]:
    """All products of the step, each on an input of its own width that is ready made."""
    num_rows = row_bucket(shape.num_rows)
    head, *layers = floor_weights(runner.model.module)
    inputs = {width: torch.randn(num_rows, width).to(runner.model.dtype) for width, _ in (head, *layers)}
    head_input = inputs[head[0]][: row_bucket(shape.num_sequences)]
    products = [*((inputs[width], weight) for width, weight in layers), (head_input, head[1])]

    def loop() -> None:
        for rows, weight in products:
            torch.ops.mkldnn._linear_pointwise(rows, weight, None, "none", [], "")

    return loop


@functools.cache
def floor_weights(module: Any) -> list[tuple[int, Tensor]]:
    """(inputs, weight packed by oneDNN) for the head, then for every other product; random numbers in all."""
    linears = [child for child in module.modules() if isinstance(child, PackedLinear)]
    linears.sort(key=lambda linear: linear is not module.lm_head)
    shapes = [(linear.out_features, linear.in_features) for linear in linears]
    packed = [pack_weight(torch.randn(shape).to(module.dtype)) for shape in shapes]
    return [(shape[1], weight) for shape, weight in zip(shapes, packed, strict=True) if weight is not None]


def step_plan(shape: Shape, vocab_size: int) -> StepPlan:
    """Every sequence has blocks of its own and samples one token."""
    chunks = []
    for index in range(shape.num_sequences):
        is_decode = index < shape.num_decodes
        start, length = (CONTEXT - 1, 1) if is_decode else (0, shape.num_prefill)
        ids = [(7919 * (index + position) + 31) % vocab_size for position in range(length)]
        blocks = list(range(index * BLOCKS_EACH, (index + 1) * BLOCKS_EACH))
        chunks.append(ScheduledChunk(_greedy_request(index), start, ids, blocks, samples=True))
    return StepPlan(0, chunks)


def _greedy_request(index: int) -> Request:
    sampling = SamplingParams(seed=0, temperature=0.0, max_tokens=CONTEXT)
    generate = Generate(request_id=f"request-{index}", prompt_ids=[1], sampling=sampling, tenant_id="bench")
    return Request(generate, arrival=index, max_tokens=CONTEXT, end_ids=frozenset())


def _seconds(act: Callable[[], object], clock: Callable[[], float]) -> float:
    started_at = clock()
    act()
    return clock() - started_at
