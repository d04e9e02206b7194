"""A process's first steps are slow: pages are mapped, threads start. No client's request should pay for that.

Before an engine says that it is ready, it runs made-up requests through a scheduler of their own: one prompt
as long as a step can be, then decodes in all places, sampled. What they leave in the pool belongs to nobody.
"""

from dataclasses import replace

from inference_engine.contract.events import Refused
from inference_engine.contract.requests import Generate
from inference_engine.contract.sampling import SamplingParams
from inference_engine.scheduling.scheduler import Scheduler, SchedulerConfig

from .runner import Runner

NUM_OUTPUTS = 6
"""Enough for the first request to be still there when the last has started."""


def rehearse(runner: Runner, config: SchedulerConfig) -> int:
    """Returns the number of steps. Raises whatever the runner raises: such an engine can't serve."""
    scheduler = Scheduler(replace(config, lag=0, enable_prefix_cache=False))
    longest = max(1, min(config.max_step_tokens, config.max_request_tokens - NUM_OUTPUTS))
    for number in range(config.max_running):
        request = _request(number, 2 if number else longest, config)
        if isinstance(scheduler.add(request), Refused):
            break
    num_steps = 0
    while (plan := scheduler.plan()) is not None:
        scheduler.apply(plan, runner.run(plan))
        num_steps += 1
    return num_steps


def _request(number: int, prompt_tokens: int, config: SchedulerConfig) -> Generate:
    sampling = SamplingParams(
        seed=number, max_tokens=NUM_OUTPUTS, temperature=1.0, top_p=0.9, ignore_eos=True
    )
    return Generate(
        request_id=f"rehearsal-{number}",
        prompt_ids=[(number + index) % config.vocab_size for index in range(prompt_tokens)],
        sampling=sampling,
        embeds=config.embeds,
        tenant_id="rehearsal",
    )
