"""How much prefill goes into a step: as much as running decodes can bear."""

from inference_engine.contract.limits import BLOCK_SIZE

from .config import SchedulerConfig
from .cost_model import StepCostModel, StepShape
from .request import Request
from .step_plan import StepPlan


class Pace:
    def __init__(self, config: SchedulerConfig) -> None:
        self._config = config
        self.model = StepCostModel()

    def prefill_budget(self, decodes: list[Request]) -> int:
        """The largest that keeps the decodes within the smallest gap target among them, by what steps have
        taken so far, and at least a block; the configured one where there is no such target."""
        if not decodes:
            return self._config.max_step_tokens
        most = self._config.max_step_tokens - len(decodes)
        target = self._gap_target(decodes)
        if target is None or not self.model.is_trusted:
            return min(self._config.prefill_budget, most)
        num_context = sum(request.num_scheduled for request in decodes)
        return min(max(BLOCK_SIZE, self.model.max_prefill_tokens(len(decodes), num_context, target)), most)

    def row_share(self, num_decodes: int) -> float:
        """How much of a step of so many decodes goes by rows: 0 for as long as too few were observed."""
        return self.model.row_share(num_decodes) if self.model.is_trusted else 0.0

    def observe(self, plan: StepPlan, seconds: float) -> None:
        self.model.observe(shape_of(plan), seconds)

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
