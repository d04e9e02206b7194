"""Targets for the time to a first token (TTFT): prompts that are going to be late get more of each step.

Time is what steps have taken, added up: whenever something waits there is a step, so a request has waited
about as long as the steps since it came. Prompts are computed in the order of `prefill_shares`, so with S
tokens to do up to the end of one, `left` seconds to its target, and steps that take `base` seconds for their
decodes and c for each prompt token, n steps bring it there in time if

    n x base + S x c <= left        so the budget of each is S / n for the largest such n, and S if that is 0

Where the prompt tokens alone take too long the target is given up: nobody's gaps are lengthened for a request
that is late anyway.
"""

from collections.abc import Mapping, Sequence

from inference_engine.contract.requests import ServiceClass

from .cost_model import StepCostModel
from .request import Request


class FirstTokenTargets:
    def __init__(self, targets: Mapping[ServiceClass, float], model: StepCostModel) -> None:
        """`targets`: seconds from a request's arrival to its first token, by class."""
        self._targets = targets
        self._model = model
        self.now = 0.0
        """Seconds of steps so far."""

    def smallest_budget(self, prompts: Sequence[Request], step_seconds: float) -> int:
        """Prompt tokens a step that keep every target which can be kept, beside decodes that take
        `step_seconds`. `prompts`: those being computed, and whoever is next."""
        budget, num_tokens = 0, 0
        for request in sorted(prompts, key=lambda each: (each.class_rank, each.num_remaining)):
            num_tokens += request.num_remaining
            target = self._targets.get(request.service_class)
            if target is None or request.num_known > request.num_prompt:
                continue
            left = request.arrived_at + target - self.now
            spare = left - num_tokens * self._model.seconds_per_prefill_token
            if spare > 0:
                num_steps = max(1, int(spare / step_seconds))
                budget = max(budget, -(-num_tokens // num_steps))
        return budget
