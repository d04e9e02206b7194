"""From a decision to a reservation: again whenever what it was made from turns out to be out of date."""

import json
import time
from asyncio import CancelledError

from django.conf import settings

from admission.admission import Admission
from admission.decision import Admit, decide
from admission.facts import FleetFacts, FleetLoad, RequestFacts, Rules
from admission.freshness import confirmed
from admission.leaving import somebody_left
from admission.maintenance import maintenance_message
from admission.metrics import ADMITTED
from admission.refusals import no_room, too_large
from admission.settlement import settler
from api_keys.authentication import is_current, reload_principal
from api_keys.principal import Principal
from quotas.budget_loading import load_budgets
from quotas.limits import LimitKind, Policy
from quotas.outcomes import Cold, NoRoom, OtherPeriod, Outcome, Reserved, Stale, TooLarge
from quotas.reservation_keys import ReservationKeys
from quotas.reservations import Reservation, release, reserve
from quotas.store import closed_when_unreachable, run_number
from tenants.errors import Denied, store_unavailable

MAX_ATTEMPTS = 6
"""A policy may change again while it is reloaded, a place that became free may be gone again."""


async def admit(
    principal: Principal, facts: RequestFacts, fleet: FleetFacts | None, load: FleetLoad | None
) -> Admission:
    """Raises Denied; then, or if it is cancelled, nothing stays reserved."""
    attempt = Attempt(principal, facts, fleet, load, await _rules())
    try:
        for _ in range(MAX_ATTEMPTS):
            admission = await attempt.once()
            if admission is not None:
                ADMITTED.labels(facts.endpoint).inc()
                return admission
        raise attempt.refusal
    except (Denied, CancelledError):
        if attempt.has_place:
            settler().release(attempt.keys)
        raise


class Attempt:
    """What is known about one request on its way in."""

    def __init__(
        self,
        principal: Principal,
        facts: RequestFacts,
        fleet: FleetFacts | None,
        load: FleetLoad | None,
        rules: Rules,
    ) -> None:
        self.principal, self.facts, self.fleet, self.load = principal, facts, fleet, load
        self.rules = rules
        self.keys = ReservationKeys(principal.tenant_id, principal.key_id, facts.request_id, facts.model)
        self.is_fresh = False
        """The principal was just read from the database."""
        self.has_place = False
        """Or may have one: it was asked for, and no answer has come yet."""
        self.now = time.time()
        self.refusal = store_unavailable()

    async def once(self) -> Admission | None:
        """None: something was learnt, try again. Raises Denied."""
        await settler().recovered()
        run = run_number()
        decision = self._decide()
        if isinstance(decision, Denied):
            await self._confirm_or_refuse(decision)
            return None
        tokens = self.facts.prompt_tokens + decision.max_tokens
        reservation = Reservation(self.keys, tokens, _fields(self.principal, self.facts))
        match await self._reserve(reservation):
            case Reserved() as reserved:
                if run != run_number():
                    await self._give_up_place()
                elif is_current(self.principal):
                    return Admission(self.principal, self.facts, reservation, decision, reserved.rates)
                await self._reload()
            case Stale():
                await self._reload()
            case OtherPeriod(now):
                self.now = now
            case Cold(rules):
                await load_budgets(self.keys, rules, self.principal.time_zone, self.now)
            case TooLarge() as refused:
                await self._confirm_or_refuse(too_large(refused, tokens))
            case NoRoom() as refused:
                await self._wait_or_refuse(refused)
        return None

    async def _reserve(self, reservation: Reservation) -> Outcome:
        self.has_place = True
        try:
            outcome = await reserve(reservation, self._policy(), is_fresh=self.is_fresh, now=self.now)
        except Denied:  # nobody can tell; the sweeper will
            self.has_place = False
            raise
        self.has_place = isinstance(outcome, Reserved)
        return outcome

    def _decide(self) -> Admit | Denied:
        return decide(self.principal, self.facts, self.fleet, self.load, self.rules)

    def _policy(self) -> Policy:
        return Policy(self.principal.policy_epoch, self.principal.limits, self.principal.time_zone)

    async def _give_up_place(self) -> None:
        """It was given by a Redis that may not have known of others. Raises STORE_UNAVAILABLE."""
        async with closed_when_unreachable():
            await release(self.keys)
        self.has_place = False

    async def _reload(self) -> None:
        self.principal, self.is_fresh = await reload_principal(self.principal), True

    async def _confirm_or_refuse(self, denied: Denied) -> None:
        """An older policy must not refuse what the present one allows."""
        present = await confirmed(self.principal)
        if present == self.principal:
            raise denied
        self.principal, self.is_fresh = present, True

    async def _wait_or_refuse(self, refused: NoRoom) -> None:
        """A place may be about to become free (admission/leaving.py)."""
        self.refusal = no_room(refused)
        is_concurrency = refused.rule.kind is LimitKind.CONCURRENT
        if not (is_concurrency and await somebody_left(self.principal.tenant_id)):
            raise self.refusal


async def _rules() -> Rules:
    return Rules(
        settings.OCTAVO_DEFAULT_OUTPUT_TOKENS, settings.OCTAVO_SHED_WAITING, await maintenance_message()
    )


def _fields(principal: Principal, facts: RequestFacts) -> dict[str, str]:
    """Nothing is billed yet: usage is written by renewals, the engine's orphan report and the settlement."""
    return {
        "request_id": facts.request_id,
        "tenant_id": principal.tenant_id,
        "tenant_name": principal.tenant_name,
        "key_id": principal.key_id,
        "key_name": principal.key_name,
        "model": facts.model,
        "endpoint": facts.endpoint,
        "user": facts.user,
        "metadata": json.dumps(facts.metadata),
    }
