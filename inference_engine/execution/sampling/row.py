"""What the sampler needs to know about one row of logits."""

from dataclasses import dataclass

from inference_engine.contract.sampling import SamplingParams
from inference_engine.execution.sampling.adjustments import Adjustment


@dataclass(frozen=True, slots=True)
class SamplingRow:
    """One row that samples. Its token is a function of its logits and of these fields alone."""

    params: SamplingParams
    choice: int
    position: int
    """Absolute index (in prompt + output) of the token being sampled."""
    forbid_ids: frozenset[int] = frozenset()
    """Ids that can't be sampled here: the end and stop ids while the request is under its min_tokens, and
    those that would complete a bad word."""
    adjustment: Adjustment | None = None
    """What its tokens so far, and its biases, do to its logits."""
