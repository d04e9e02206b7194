"""Random-weight models through the real engine: right by transformers, how fast beside it and the floors."""

import statistics
import time
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.gpu.clock import synchronise
from benchmarks.gpu.random_models import ModelShape, make_model
from inference_engine.contract.events import Accepted
from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.contract.requests import Generate
from inference_engine.contract.sampling import SamplingParams
from inference_engine.execution.attention.triton import TritonBackend
from inference_engine.execution.device.device_runner import DeviceRunner
from inference_engine.execution.model_runner import RunnerLimits
from inference_engine.execution.models.model_loading import pack_and_check
from inference_engine.execution.models.self_check import eager_logits, packed_logits
from inference_engine.scheduling.scheduler import Scheduler, SchedulerConfig
from inference_engine.serving.pipeline import make_pipeline

MEMORY_SPARE = 1.25
"""Of a model's weights and KV, what must be free for it to be tried."""


@dataclass(frozen=True)
class Load:
    """What is measured of each model."""

    batches: tuple[int, ...] = (1, 16, 64)
    context: int = 512
    outputs: int = 33
    prefill: int = 2048

    @property
    def context_length(self) -> int:
        return max(self.context + self.outputs, self.prefill + 1) + BLOCK_SIZE

    @property
    def num_blocks(self) -> int:
        return max(self.batches) * -(-(self.context + self.outputs) // BLOCK_SIZE) + max(self.batches)


@dataclass(frozen=True)
class Floors:
    bytes_per_s: float
    flops_per_s: float


def check_model(shape: ModelShape, device: torch.device, load: Load, floors: Floors) -> dict[str, Any]:
    needed = shape.bytes + load.num_blocks * BLOCK_SIZE * shape.kv_bytes_per_token
    if device.type == "cuda" and torch.cuda.mem_get_info(device)[0] < MEMORY_SPARE * needed:
        return {"name": shape.name, "skipped": f"{needed / 2**30:.1f} GiB of GPU memory are not free"}
    module = make_model(shape, device, load.context_length)
    plain = {batch: _transformers(module, batch, load, device) for batch in load.batches}
    runner, logits_error = _runner(module, device, load)
    steps = [_decode(runner, shape, batch, load, floors, plain[batch]) for batch in load.batches]
    return {
        "name": shape.name,
        "logits_error": logits_error,
        "batch_invariant": runner.batch_invariant,
        "decode": steps,
        "prefill": _prefill(runner, shape, load, floors),
    }


@torch.inference_mode()
def _transformers(module: Any, batch: int, load: Load, device: torch.device) -> dict[str, Any]:
    """Greedy `generate` by transformers: milliseconds a step, and its tokens."""
    ids = torch.tensor(
        [_prompt(n, load.context, module.config.vocab_size) for n in range(batch)], device=device
    )
    times = []
    for outputs in (1, 1, load.outputs):
        synchronise(device)
        started = time.perf_counter()
        made = module.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=outputs, do_sample=False, pad_token_id=0
        )
        synchronise(device)
        times.append(time.perf_counter() - started)
    step_ms = (times[2] - times[1]) / (load.outputs - 1) * 1e3
    return {"step_ms": step_ms, "tokens": made[:, load.context :].tolist()}


def _runner(module: Any, device: torch.device, load: Load) -> tuple[DeviceRunner, float]:
    """Packed and warm; and how far its logits are from the module's own eager ones, by size."""
    module.set_attn_implementation("eager")
    expected = eager_logits(module)
    backend = TritonBackend(device, batch_invariant=False)
    model = pack_and_check(module, "random weights", backend)
    difference = packed_logits(module, "random weights", backend) - expected
    limits = RunnerLimits(max_running=max(load.batches), max_step_tokens=load.prefill)
    runner = DeviceRunner(model, backend, limits, num_blocks=load.num_blocks)
    runner.warm()
    return runner, (difference.norm() / expected.norm()).item()


def _decode(
    runner: DeviceRunner, shape: ModelShape, batch: int, load: Load, floors: Floors, plain: dict[str, Any]
) -> dict[str, Any]:
    prompts = [_prompt(n, load.context, shape.vocabulary) for n in range(batch)]
    outputs, steps = _generate(runner, prompts, load.outputs)
    decodes = [seconds for num_rows, num_chunks, seconds in steps if num_rows == num_chunks == batch]
    step_ms = statistics.median(decodes) * 1e3
    read = 2 * shape.matrix_weights + batch * load.context * shape.kv_bytes_per_token
    floor_ms = max(read / floors.bytes_per_s, 2 * batch * shape.matrix_weights / floors.flops_per_s) * 1e3
    theirs = plain["tokens"]
    return {
        "batch": batch,
        "step_ms": step_ms,
        "over_floor": step_ms / floor_ms,
        "transformers_step_ms": plain["step_ms"],
        "equal_first_tokens": _equal_share([each[:1] for each in outputs], [each[:1] for each in theirs]),
        "equal_tokens": _equal_share(outputs, theirs),
    }


def _equal_share(ours: list[list[int]], theirs: list[list[int]]) -> float:
    """Of tokens at equal places. Random weights are full of near ties, after which bf16 texts go apart."""
    equal = [a == b for one, other in zip(ours, theirs, strict=True) for a, b in zip(one, other, strict=True)]
    return sum(equal) / len(equal)


def _prefill(runner: DeviceRunner, shape: ModelShape, load: Load, floors: Floors) -> dict[str, float]:
    prompts = [_prompt(7 + n, load.prefill, shape.vocabulary) for n in range(3)]
    times = []
    for prompt in prompts:
        _, steps = _generate(runner, [prompt], 1)
        times.append(steps[0][2])
    elapsed = min(times)
    floor = 2 * load.prefill * shape.matrix_weights / floors.flops_per_s
    return {"tokens": load.prefill, "ms": elapsed * 1e3, "over_floor": elapsed / floor}


def _generate(
    runner: DeviceRunner, prompts: list[list[int]], num_outputs: int
) -> tuple[list[list[int]], list[tuple[int, int, float]]]:
    """Outputs by prompt, and (rows, chunks, seconds) of each step, through scheduler and pipeline."""
    scheduler = Scheduler(
        SchedulerConfig(
            num_blocks=runner.num_blocks,
            max_running=runner.limits.max_running,
            context_length=runner.model.context_length,
            vocab_size=runner.model.vocab_size,
            cache_secret=b"check",
            max_step_tokens=runner.limits.max_step_tokens,
            prefill_budget=runner.limits.max_step_tokens,
            lag=1,
            enable_prefix_cache=False,
        )
    )
    outputs: dict[str, list[int]] = {}
    for number, prompt in enumerate(prompts):
        sampling = SamplingParams(seed=0, max_tokens=num_outputs, temperature=0.0)
        request = Generate(request_id=str(number), prompt_ids=prompt, sampling=sampling, tenant_id="check")
        assert isinstance(scheduler.add(request), Accepted)
        outputs[request.request_id] = []
    pipeline = make_pipeline(runner, 1)
    steps = []
    while scheduler.has_work():
        done = pipeline.advance(scheduler.plan())
        if done is None:
            continue
        if done.result is None:
            raise RuntimeError("a step failed") from done.error
        steps.append((done.plan.num_tokens, len(done.plan.chunks), done.seconds))
        for update in scheduler.apply(done.plan, done.result):
            outputs[update.request.request_id] += update.token_ids
    pipeline.close()
    return list(outputs.values()), steps


def _prompt(number: int, length: int, vocabulary: int) -> list[int]:
    return [(7919 * i * i + 31 * number + 13 * i) % vocabulary for i in range(length)]
