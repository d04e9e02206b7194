"""What plan + apply cost: `python -m inference_engine.simulation.scheduler_benchmark`.

10,000 requests of 2,000 tenants wait and so many run that each step has a decode for every one of them, but
for those that end and make room for new ones. The last line is one JSON object: milliseconds by number
running.
"""

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Sequence

from inference_engine.contract.requests import Generate, ServiceClass
from inference_engine.contract.sampling import SamplingParams
from inference_engine.scheduling.policies import POLICIES
from inference_engine.scheduling.scheduler import Scheduler, SchedulerConfig
from inference_engine.scheduling.step_plan import SampledToken, StepResult
from inference_engine.serving.collector import settle_collector

NUM_TENANTS = 2_000
PROMPT_TOKENS = 24
MAX_OUTPUT_TOKENS = 120
RUNNING = (16, 64, 256, 1024)


def draw_request(draw: random.Random, number: int) -> Generate:
    return Generate(
        request_id=f"r{number}",
        prompt_ids=[draw.randrange(1_000) for _ in range(PROMPT_TOKENS)],
        sampling=SamplingParams(seed=number, max_tokens=draw.randint(10, MAX_OUTPUT_TOKENS), ignore_eos=True),
        tenant_id=f"t{draw.randrange(NUM_TENANTS)}",
        service_class=draw.choice(list(ServiceClass)),
    )


def step(scheduler: Scheduler, token: SampledToken) -> tuple[float, int]:
    """(seconds of this thread in plan + apply, requests that ended)"""
    started = time.thread_time()
    plan = scheduler.plan()
    planned = time.thread_time()
    if plan is None:
        raise RuntimeError("nothing is planned")
    result = StepResult([token if chunk.samples else None for chunk in plan.chunks])
    resulted = time.thread_time()
    updates = scheduler.apply(plan, result)
    seconds = planned - started + time.thread_time() - resulted
    return seconds, sum(update.finish is not None for update in updates)


def measure(policy: str, num_running: int, num_waiting: int, num_steps: int) -> float:
    """Median milliseconds a step."""
    draw = random.Random(1)  # noqa: S311
    config = SchedulerConfig(
        num_blocks=num_running * 12,
        max_running=num_running,
        context_length=512,
        vocab_size=1_000,
        cache_secret=b"benchmark",
        max_step_tokens=num_running + 512,
        prefill_budget=512,
        max_waiting=num_waiting + num_running,
        policy=policy,
    )
    scheduler, token, number = Scheduler(config), SampledToken(7), 0
    for _ in range(num_running + num_waiting):
        number += 1
        scheduler.add(draw_request(draw, number))
    times: list[float] = []
    while len(times) < num_steps:
        seconds, num_ended = step(scheduler, token)
        for _ in range(num_ended):
            number += 1
            scheduler.add(draw_request(draw, number))
        if len(scheduler.roster.running) >= num_running * 0.95:
            times.append(seconds)
    return statistics.median(times) * 1e3


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Milliseconds of plan + apply.")
    parser.add_argument("--policy", choices=sorted(POLICIES), default="fair")
    parser.add_argument("--waiting", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args(arguments)
    settle_collector()
    cost = {}
    for num_running in RUNNING:
        cost[str(num_running)] = round(
            measure(options.policy, num_running, options.waiting, options.steps), 4
        )
        print(f"running={num_running} plan_apply_ms={cost[str(num_running)]}", flush=True)
    print(json.dumps({"plan_apply_ms": cost}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
