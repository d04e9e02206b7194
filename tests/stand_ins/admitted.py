"""An admission without a gate."""

from types import SimpleNamespace

from inference_engine.contract.codes import Code
from inference_engine.contract.requests import ServiceClass
from tenants.errors import Denied
from usage.models import Ending


class Admitted:
    """An admission that writes down what it is told."""

    request_id, reservation_key, weight = "r1", "", 1.0
    service_class, max_tokens = ServiceClass.BULK, 20
    principal = SimpleNamespace(tenant_id="t", key_id="k")

    def __init__(self, queue_timeout_s: float) -> None:
        self.queue_timeout_s = queue_timeout_s
        self.endings: list[tuple[Ending, Code | None]] = []
        self.recorded: dict[str, object] = {}

    def record(self, **fields: object) -> None:
        self.recorded |= fields

    def on_end(self, callback: object) -> None: ...

    def finish(self, ending: Ending, code: Code | None = None, finish_reason: str = "") -> None:
        self.endings.append((ending, code))

    def finish_with(self, error: BaseException) -> None:
        self.finish(Ending.FAILED, error.code if isinstance(error, Denied) else Code.INTERNAL_ERROR)
