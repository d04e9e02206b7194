"""Long random runs of the scheduler: `python -m inference_engine.simulation.scheduler_driver --steps 20000`.

Tiny pools, a tiny vocabulary, shared prefixes, aborts and failures, all checked after every act. One line
of figures a lag; exits with 1 and the seed at the first broken invariant.
"""

import argparse
import random
import sys
import time
from collections.abc import Sequence

from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.contract.requests import Generate, ServiceClass
from inference_engine.contract.sampling import SamplingParams
from inference_engine.scheduling.integrity import BrokenInvariant
from inference_engine.scheduling.scheduler import SchedulerConfig

from .checked_scheduler import CheckedScheduler

VOCAB_SIZE = 23
END_IDS = frozenset({3})
STEPS_PER_POOL = 2_000
"""Then everything is drained and the next pool begins."""


class Traffic:
    """Draws requests. Prompts begin with a few pages in any order, so that many share a prefix with others,
    and many have a page in common that stands after another prefix."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._num_requests = 0
        self._pages = [self._ids(BLOCK_SIZE) for _ in range(3)]

    def generate(self) -> Generate:
        draw = self._draw
        self._num_requests += 1
        prefix = [token_id for page in draw.choices(self._pages, k=draw.randrange(5)) for token_id in page]
        max_tokens = draw.randint(1, 90)
        return Generate(
            request_id=f"r{self._num_requests}",
            prompt_ids=prefix + self._ids(draw.randint(0 if prefix else 1, 20)),
            output_ids=self._ids(draw.randrange(max_tokens)) if draw.random() < 0.1 else [],
            sampling=SamplingParams(
                seed=draw.randrange(5),
                max_tokens=max_tokens,
                min_tokens=draw.choice((0, 0, 4)),
                stop_token_ids=draw.choice(((), (), (), (5,))),
                ignore_eos=draw.random() < 0.8,
            ),
            tenant_id=draw.choice("ab"),
            service_class=draw.choice(list(ServiceClass)),
        )

    def _ids(self, count: int) -> list[int]:
        return [self._draw.randrange(VOCAB_SIZE) for _ in range(count)]


def draw_config(draw: random.Random, lag: int) -> SchedulerConfig:
    max_running = draw.randint(2, 12)
    return SchedulerConfig(
        num_blocks=draw.randint(8, 20),
        max_running=max_running,
        context_length=160,
        vocab_size=VOCAB_SIZE,
        cache_secret=b"octavo",
        max_step_tokens=max_running + draw.randint(1, 100),
        prefill_budget=draw.randint(1, 48),
        max_waiting=30,
        lag=lag,
        enable_prefix_cache=draw.random() < 0.8,
        end_ids=END_IDS,
    )


def drive(checked: CheckedScheduler, draw: random.Random, num_steps: int) -> None:
    """Raises BrokenInvariant."""
    traffic = Traffic(draw)
    for _ in range(num_steps):
        if draw.random() < 0.2:
            generate = traffic.generate()
            known = len(generate.prompt_ids) + len(generate.output_ids)
            checked.add(generate, known + draw.randrange(20) if draw.random() < 0.05 else None)
        if checked.scheduler.requests and draw.random() < 0.02:
            checked.abort(draw.choice(list(checked.scheduler.requests)))
        if draw.random() < 0.1 and checked.can_plan():
            checked.plan()
        checked.turn()
    checked.drain()


def soak(lag: int, num_steps: int, seed: int) -> str:
    """The report's line; raises BrokenInvariant."""
    draw = random.Random(seed)  # noqa: S311
    totals = dict.fromkeys(("num_steps", "num_finished", "num_aborted", "num_failed", "num_refused"), 0)
    totals |= dict.fromkeys(("num_preemptions", "num_recomputed_tokens", "cached_prompt_tokens"), 0)
    started = time.perf_counter()
    while totals["num_steps"] < num_steps:
        checked = CheckedScheduler(draw_config(draw, lag))
        drive(checked, draw, min(STEPS_PER_POOL, num_steps - totals["num_steps"]))
        stats = checked.scheduler.stats()
        totals = {name: value + getattr(stats, name) for name, value in totals.items()}
    rate = totals["num_steps"] / (time.perf_counter() - started)
    figures = " ".join(f"{name}={value}" for name, value in totals.items())
    return f"lag={lag} steps_per_s={rate:.0f} broken_invariants=0 {figures}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Drive the scheduler with random traffic, checking everything."
    )
    parser.add_argument("--steps", type=int, default=20_000, help="steps for each lag")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lag", type=int, choices=(0, 1), help="one lag only")
    options = parser.parse_args(arguments)
    for lag in (0, 1) if options.lag is None else (options.lag,):
        try:
            print(soak(lag, options.steps, options.seed), flush=True)
        except BrokenInvariant as broken:
            print(f"lag={lag} seed={options.seed} broken_invariants=1 {broken}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
