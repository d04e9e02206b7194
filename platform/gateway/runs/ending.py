"""How a request ended, from how its handler did."""

import asyncio
from collections.abc import Callable

from admission.admission import Admission
from fleet.failures import GenerationFailed
from inference_engine.contract.codes import Code
from usage.models import Ending


def note_ending(
    admission: Admission, error: BaseException | None, broken: GenerationFailed | None, finish_reason: str
) -> None:
    """`broken`: why a generation broke off, if one did."""
    if error is None:
        admission.finish(Ending.FINISHED, None, finish_reason)
    elif broken is not None and broken.code is not Code.ENGINE_LOST:
        admission.finish(Ending.ABORTED, broken.code)
    else:
        admission.finish_with(error)


def queue_timer(admission: Admission, abort: Callable[[GenerationFailed], None]) -> asyncio.TimerHandle:
    """Gives the run up, unless it is cancelled before: an engine has begun, or all is over."""
    wait_s = admission.queue_timeout_s
    return asyncio.get_running_loop().call_later(wait_s, lambda: abort(_waited_in_vain(wait_s)))


def _waited_in_vain(wait_s: float) -> GenerationFailed:
    message = f"No engine had begun with this request after {wait_s:g} seconds."
    return GenerationFailed(Code.QUEUE_TIMEOUT, message, retry_after_s=1.0)


def withdrawn(code: Code) -> GenerationFailed:
    """The platform took the admission back, and `code` says why."""
    return GenerationFailed(code, "Access was withdrawn while this answer was made.")
