"""How much prefill goes into a step: as much as running decodes can bear."""

from collections.abc import Callable, Sequence

from inference_engine.contract.limits import BLOCK_SIZE

from .config import SchedulerConfig
from .cost_model import StepCostModel, StepShape
from .first_token_targets import FirstTokenTargets
from .request import Request
from .step_plan import StepPlan

FIXED_ROWS = 4
"""A step costs as much as so many of its rows before it has any: on a CPU, and until it was observed."""


class Pace:
    def __init__(self, config: SchedulerConfig) -> None:
        self._config = config
        self.model = StepCostModel()
        self.first_tokens = FirstTokenTargets(config.ttft_targets, self.model)

    @property
    def has_targets(self) -> bool:
        return bool(self._config.gap_targets or self._config.ttft_targets)

    def prefill_budget(self, decodes: list[Request], prompts: Callable[[], Sequence[Request]]) -> int:
        """The largest that keeps the decodes within the smallest gap target among them, by what steps have
        taken so far, and at least a block. Where there is no such target the configured one, or what brings
        `prompts` to their first tokens in time, if that is more."""
        if not decodes:
            return self._config.max_step_tokens
        budget = self._config.prefill_budget
        if self.has_targets and self.model.is_trusted_on_prefill:
            budget = self._budget_by_targets(decodes, prompts)
        return min(budget, self._config.max_step_tokens - len(decodes))

    def _budget_by_targets(self, decodes: list[Request], prompts: Callable[[], Sequence[Request]]) -> int:
        num_context = sum(request.num_scheduled for request in decodes)
        gap_target = self._gap_target(decodes)
        if gap_target is not None:
            largest = self.model.max_prefill_tokens(len(decodes), num_context, gap_target)
            return max(BLOCK_SIZE, largest)
        decoding = self.model.predict(StepShape(len(decodes), 0, num_context))
        needed = self.first_tokens.smallest_budget(prompts(), decoding)
        return max(self._config.prefill_budget, needed)

    def row_share(self, num_decodes: int) -> float:
        """How much of a step of so many decodes goes by rows."""
        if self.model.is_trusted:
            return self.model.row_share(num_decodes)
        return num_decodes / (num_decodes + FIXED_ROWS)

    def observe(self, plan: StepPlan, seconds: float) -> None:
        self.model.observe(shape_of(plan), seconds)
        self.first_tokens.now += seconds

    def _gap_target(self, decodes: list[Request]) -> float | None:
        targets = self._config.gap_targets
        if not targets:
            return None
        classes = {request.service_class for request in decodes}
        return min((targets[each] for each in classes if each in targets), default=None)


def shape_of(plan: StepPlan) -> StepShape:
    """A chunk of one token counts as a decode, whatever it is, and so do its drafts: they cost the same."""
    num_decodes = num_prefill = num_context = 0
    for chunk in plan.chunks:
        size = len(chunk.token_ids)
        if size == 1 + chunk.num_drafts:
            num_decodes += size
            num_context += size * chunk.start
        else:
            num_prefill += size
    return StepShape(num_decodes, num_prefill, num_context)
