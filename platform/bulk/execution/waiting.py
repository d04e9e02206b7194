"""What becomes of a line that was not answered: it waits and tries again, or it fails. Pure."""

from dataclasses import dataclass

from gateway.errors import SHAPES
from inference_engine.contract.codes import Code
from tenants.errors import Denied

MAX_FAULTS = 5
"""Attempts of one line that may break off before it is the line's own fault."""
FAULTS = frozenset(
    {
        Code.ENGINE_LOST,
        Code.INTERNAL_ERROR,
        Code.NON_FINITE_LOGITS,
        Code.INVALID_FRAME,
        Code.SLOW_READER,
        Code.QUEUE_TIMEOUT,
        Code.DEADLINE_EXCEEDED,
    }
)
DEFAULT_WAIT_S = 1.0


@dataclass(frozen=True, slots=True)
class Wait:
    seconds: float
    is_fault: bool = False


def wait_after(denied: Denied, num_faults: int, left_s: float) -> Wait | None:
    """None: there is no point in trying again. `left_s`: until the batch expires."""
    if denied.code in FAULTS:
        return Wait(DEFAULT_WAIT_S, is_fault=True) if num_faults + 1 < MAX_FAULTS else None
    if denied.code is Code.INSUFFICIENT_QUOTA:  # used up until the next period, or too large for any
        until = denied.retry_after_s
        return Wait(until) if until is not None and until < left_s else None
    if not SHAPES[denied.code].should_retry:
        return None
    return Wait(denied.retry_after_s or DEFAULT_WAIT_S)
