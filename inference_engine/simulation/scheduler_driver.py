"""Long random runs of the scheduler: `python -m inference_engine.simulation.scheduler_driver --steps
1000000`.

Tiny pools, every policy, tenants with limits and weights, classes, groups that fork, shared prefixes, drafts,
aborts and failures, all on the chain model, where a wrong page table gives a wrong token. One line of figures
a lag, then one JSON object; exits with 1 and the seed at the first broken invariant.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence

from inference_engine.contract.requests import ServiceClass, TenantShare
from inference_engine.scheduling.integrity import BrokenInvariant
from inference_engine.scheduling.policies import POLICIES
from inference_engine.scheduling.scheduler import SchedulerConfig

from .checked_scheduler import CheckedScheduler
from .random_traffic import END_IDS, TENANTS, VOCAB_SIZE, Traffic

STEPS_PER_POOL = 2_000
"""Then everything is drained and the next pool begins."""
TOLD = (
    "num_steps",
    "num_finished",
    "num_aborted",
    "num_failed",
    "num_refused",
    "num_preemptions",
    "num_computed_tokens",
    "num_recomputed_tokens",
    "cached_prompt_tokens",
    "num_drafted_tokens",
    "num_accepted_tokens",
)


def draw_config(draw: random.Random, lag: int, policy: str) -> SchedulerConfig:
    max_running = draw.randint(2, 12)
    return SchedulerConfig(
        num_blocks=draw.randint(8, 20),
        max_running=max_running,
        context_length=160,
        vocab_size=VOCAB_SIZE,
        cache_secret=b"octavo",
        max_step_tokens=max_running + draw.randint(1, 100),
        prefill_budget=draw.randint(1, 48),
        bulk_tokens=draw.choice((1, 2, 4, 16)),
        max_waiting=30,
        policy=policy,
        ageing_tokens=draw.choice((50, 500, 5_000)),
        lag=lag,
        max_draft_tokens=draw.choice((0, 4, 8)),
        gap_targets=draw.choice(({}, {ServiceClass.STANDARD: 0.02})),
        ttft_targets=draw.choice(({}, {ServiceClass.INTERACTIVE: 0.03, ServiceClass.BULK: 0.3})),
        enable_prefix_cache=draw.random() < 0.8,
        end_ids=END_IDS,
    )


def draw_shares(draw: random.Random) -> dict[str, TenantShare]:
    return {
        tenant: TenantShare(
            weight=draw.choice((0.5, 1.0, 4.0)),
            max_kv_fraction=draw.choice((1.0, 0.7, 0.4)),
            max_queued_requests=draw.choice((None, 6)),
            max_queued_tokens=draw.choice((None, 400)),
        )
        for tenant in draw.sample(TENANTS, 2)
    }


def drive(checked: CheckedScheduler, draw: random.Random, num_turns: int) -> None:
    """Raises BrokenInvariant."""
    traffic = Traffic(draw)
    for _ in range(num_turns):
        if draw.random() < 0.12:
            for generate in traffic.group() if draw.random() < 0.3 else [traffic.generate()]:
                known = len(generate.prompt_ids) + len(generate.output_ids)
                checked.add(generate, known + draw.randrange(20) if draw.random() < 0.05 else None)
        if checked.scheduler.requests and draw.random() < 0.02:
            checked.abort(draw.choice(list(checked.scheduler.requests)))
        if draw.random() < 0.003:
            checked.set_tenant_shares(draw_shares(draw))
        if draw.random() < 0.1 and checked.can_plan():
            checked.plan()
        checked.turn()
    checked.drain()


def soak(lag: int, num_steps: int, seed: int, policies: Sequence[str], check_every: int) -> Counter[str]:
    """Totals of all pools; raises BrokenInvariant."""
    draw = random.Random(seed)  # noqa: S311
    totals: Counter[str] = Counter(dict.fromkeys(TOLD, 0))
    number = 0
    while totals["num_steps"] < num_steps:
        checked = CheckedScheduler(draw_config(draw, lag, policies[number % len(policies)]), check_every)
        drive(checked, draw, min(STEPS_PER_POOL, num_steps - totals["num_steps"]))
        totals["num_forks"] += checked.num_forks
        stats = checked.scheduler.stats()
        totals.update({name: getattr(stats, name) for name in TOLD})
        number += 1
    return totals


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Drive the scheduler with random traffic, checking everything."
    )
    parser.add_argument("--steps", type=int, default=20_000, help="in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lag", type=int, choices=(0, 1), help="one lag only")
    parser.add_argument("--policy", choices=sorted(POLICIES), help="one policy only")
    parser.add_argument("--check-every", type=int, default=1, help="whole state after each so many acts")
    options = parser.parse_args(arguments)
    lags = (0, 1) if options.lag is None else (options.lag,)
    policies = sorted(POLICIES) if options.policy is None else [options.policy]
    num_steps = 0
    for lag in lags:
        started = time.perf_counter()
        try:
            totals = soak(lag, options.steps // len(lags), options.seed, policies, options.check_every)
        except BrokenInvariant as broken:
            print(f"lag={lag} seed={options.seed} broken_invariants=1 {broken}", file=sys.stderr)
            print(json.dumps({"steps": num_steps, "violations": 1}))
            return 1
        rate = totals["num_steps"] / (time.perf_counter() - started)
        num_steps += totals["num_steps"]
        figures = " ".join(f"{name}={value}" for name, value in totals.items())
        print(f"lag={lag} steps_per_s={rate:.0f} broken_invariants=0 {figures}", flush=True)
    print(json.dumps({"steps": num_steps, "violations": 0}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
