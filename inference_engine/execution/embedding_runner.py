"""Runs the step plans of a model made for embeddings: its requests end with a vector where others sample."""

import torch

from inference_engine.execution.forward.pooling import pooled_result
from inference_engine.execution.model_runner import ModelRunner
from inference_engine.scheduling.step_plan import StepPlan, StepResult


class EmbeddingRunner(ModelRunner):
    @torch.inference_mode()
    def run(self, plan: StepPlan) -> StepResult:
        """Compute one step. The plan's requests all embed."""
        embedding = self.model.embedding
        assert embedding is not None
        return pooled_result(plan.chunks, self._states(self._inputs(plan)), embedding)
