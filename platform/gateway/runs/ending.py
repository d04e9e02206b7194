"""How a request ended, from how its handler did."""

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
