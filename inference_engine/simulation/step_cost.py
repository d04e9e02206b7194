"""What a step takes where nothing is computed: linear in its shape."""

from dataclasses import dataclass

from inference_engine.scheduling.cost_model import StepShape


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCost:
    """Seconds. The defaults are about those of a model of 135M parameters on two CPU cores."""

    step: float = 0.010
    decode: float = 0.0004
    prefill_token: float = 0.00018
    context_token: float = 0.0000002

    def seconds(self, shape: StepShape) -> float:
        return (
            self.step
            + self.decode * shape.num_decodes
            + self.prefill_token * shape.num_prefill_tokens
            + self.context_token * shape.num_context_tokens
        )
