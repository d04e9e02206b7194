"""One admitted request, from the reservation to its ledger row."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import structlog
from django.conf import settings

from admission.decision import Admit, standing
from admission.facts import RequestFacts
from admission.leaving import Left, leaving
from admission.rate_headers import rate_headers
from admission.settlement import settler
from api_keys.authentication import reload_principal
from api_keys.principal import Principal
from inference_engine.contract.codes import Code
from quotas.leases import Progress
from quotas.outcomes import RateStates
from quotas.reservations import Reservation
from tenants.errors import Denied
from usage.models import Ending, Source

log = structlog.get_logger(__name__)


class Admission:
    """What the gate yields. The handler records usage as it learns of it and says how the request ended."""

    def __init__(
        self,
        principal: Principal,
        facts: RequestFacts,
        reservation: Reservation,
        decision: Admit,
        rates: RateStates,
    ) -> None:
        self.principal = principal
        self.facts = facts
        self.reservation = reservation
        self.max_tokens = decision.max_tokens
        """Output tokens after every cap."""
        self.policy_epoch = principal.policy_epoch
        self.service_class = decision.service_class
        """What was asked for, but none above the tenant's."""
        self.patience_s: float | None = None
        """How long it may wait for its first token, where that is neither the tenant's nor our own to say."""
        self._is_billed = True
        self.rates = rates
        self._progress = Progress()
        self._replica = ""
        self._queue_ms: float | None = None
        self._ending: tuple[Ending, str, str] | None = None
        self._left: Left | None = None
        self._end_now: Callable[[Code], None] | None = None
        self._ended_by: Code | None = None
        self._check: asyncio.Task[None] | None = None

    @property
    def request_id(self) -> str:
        return self.facts.request_id

    @property
    def reservation_key(self) -> str:
        """Where the engine leaves an orphan's usage; empty: nowhere."""
        return self.reservation.keys.reservation if self._is_billed else ""

    @property
    def queue_timeout_s(self) -> float:
        """How long it may wait for its first token."""
        return self.patience_s or self.principal.queue_timeout_s or settings.OCTAVO_QUEUE_TIMEOUT_SECONDS

    @property
    def weight(self) -> float:
        return self.principal.weight

    def headers(self) -> dict[str, str]:
        """For the answer, whatever it is."""
        return rate_headers(self.rates)

    def record(
        self,
        *,
        prompt_tokens: int | None = None,
        cached_tokens: int | None = None,
        output_tokens: int | None = None,
        overrun_tokens: int | None = None,
        first_token_at: float | None = None,
        queue_ms: float | None = None,
        replica: str | None = None,
    ) -> None:
        """Totals so far, not increments; what isn't named stays. Times in Unix seconds.

        Nothing is billed before it is recorded: `prompt_tokens` belongs here once an engine has the request.
        """
        given: dict[str, Any] = {
            "prompt_tokens": prompt_tokens,
            "cached_tokens": cached_tokens,
            "output_tokens": output_tokens,
            "overrun_tokens": overrun_tokens,
            "first_token_at": first_token_at,
        }
        self._progress = self._progress._replace(**{k: v for k, v in given.items() if v is not None})
        self._replica = self._replica if replica is None else replica
        self._queue_ms = self._queue_ms if queue_ms is None else queue_ms

    def bill_nothing_yet(self) -> None:
        """For an answer that counts only once it is kept: until `bill` nothing is billed, however it ends."""
        self._is_billed = False

    def bill(self) -> None:
        self._is_billed = True

    def finish(self, ending: Ending, code: Code | None = None, finish_reason: str = "") -> None:
        """How the request ended. The first word counts."""
        if self._ending is None:
            self._ending = (ending, code or "", finish_reason)
            self._left = leaving(self.principal.tenant_id)

    def finish_with(self, error: BaseException) -> None:
        """How it ended, from what the handler raised without saying more."""
        if isinstance(error, asyncio.CancelledError | GeneratorExit):
            self.finish(Ending.ABORTED, self._ended_by or _why(error))
        else:
            self.finish(Ending.FAILED, error.code if isinstance(error, Denied) else Code.INTERNAL_ERROR)

    def settle(self) -> None:
        """Called once, by the gate, when the handler is done."""
        self._end_now = None  # what it ends holds this admission: a cycle for every request
        settling = settler().settle(self.reservation, self._row())
        settling.add_done_callback(lambda _: self._left_now())

    def _left_now(self) -> None:
        if self._left is not None and not self._left.done():
            self._left.set_result(None)

    def on_end(self, callback: Callable[[Code], None]) -> None:
        """`callback(code)` is called, once, when the platform takes the admission back: end the stream."""
        self._end_now = callback
        if self._ended_by is not None:
            callback(self._ended_by)

    def _row(self) -> dict[str, str]:
        """The settlement's fields of the ledger row (usage/ledger_rows.py reads them)."""
        ending, code, finish_reason = self._ending or (Ending.FAILED, Code.INTERNAL_ERROR, "")
        return {
            **self.reservation.fields,
            **dict(zip(Progress._fields, self.progress().fields(), strict=True)),
            "finished_at": str(time.time()),
            "queue_ms": "" if self._queue_ms is None else str(self._queue_ms),
            "replica": self._replica,
            "ending": str(ending),
            "code": str(code),
            "finish_reason": finish_reason,
            "source": Source.AUTHORITATIVE.value,
        }

    # What the lease keeper calls (quotas/leases.py).

    def progress(self) -> Progress:
        """What isn't billed is overrun: made, and of no use to anybody."""
        used = self._progress
        if self._is_billed:
            return used
        return Progress(0, 0, 0, used.output_tokens + used.overrun_tokens, used.first_token_at)

    def policy_changed(self) -> None:
        if self._check is None or self._check.done():
            self._check = asyncio.create_task(self._check_policy())

    def lost(self) -> None:
        log.error("lease_lost", request_id=self.request_id)
        self._end(Code.INTERNAL_ERROR)

    async def _check_policy(self) -> None:
        try:
            principal = await reload_principal(self.principal)
        except Denied as denied:
            if denied.code is not Code.STORE_UNAVAILABLE:  # nobody can tell now: the next renewal asks again
                self._end(denied.code)
            return
        self.policy_epoch = principal.policy_epoch
        denied_now = standing(principal, self.facts)
        if denied_now is not None:
            self._end(denied_now.code)

    def _end(self, code: Code) -> None:
        if self._ended_by is None:
            self._ended_by = code
            if self._end_now is not None:
                self._end_now(code)


def _why(cancelled: BaseException) -> Code:
    """Who cancels for another reason than the client's says so (fleet/cancelling.py)."""
    return next((word for word in cancelled.args if isinstance(word, Code)), Code.CLIENT_GONE)
