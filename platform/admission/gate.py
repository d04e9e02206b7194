"""The one door: nothing reaches an engine without passing it, and what passed it is settled exactly once."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from django.conf import settings

from admission.admission import Admission
from admission.decision import Admit, decide
from admission.facts import FleetFacts, RequestFacts
from admission.freshness import confirmed
from admission.leaving import somebody_left
from admission.metrics import ADMITTED, DENIED
from admission.rate_headers import rate_headers
from admission.settlement import settler
from api_keys.authentication import forget_principals, is_current, reload_principal
from api_keys.principal import Principal
from inference_engine.contract.codes import Code
from quotas.leases import lease_keeper
from quotas.limits import Policy, ScopeLimits
from quotas.outcomes import NoRoom, Reserved
from quotas.reservation_keys import ReservationKeys
from quotas.reservations import Reservation, reserve
from quotas.store import on_new_run
from tenants.errors import Denied, store_unavailable
from usage.models import Ending

MAX_ATTEMPTS = 4
"""A policy may change again while it is reloaded, a place that became free may be gone again."""

on_new_run(forget_principals)


@asynccontextmanager
async def gate(
    principal: Principal, facts: RequestFacts, fleet: FleetFacts | None = None
) -> AsyncIterator[Admission]:
    """Raises Denied before the body runs, or not at all. Leaving it, however, settles in the background.

    Without `fleet` the model's limits are not looked at.
    """
    admission = await _admitted_or_abandoned(principal, facts, fleet)
    lease_keeper().hold(admission)
    try:
        yield admission
    except BaseException as error:
        admission.finish_with(error)
        raise
    finally:
        lease_keeper().drop(admission)
        admission.settle()


async def _admitted_or_abandoned(
    principal: Principal, facts: RequestFacts, fleet: FleetFacts | None
) -> Admission:
    """A client that goes away meanwhile can't leave a reservation behind that nobody knows of."""
    admitting = asyncio.create_task(_admit(principal, facts, fleet))
    try:
        return await asyncio.shield(admitting)
    except asyncio.CancelledError:
        admitting.add_done_callback(_abandon)
        raise
    except Denied as denied:
        DENIED.labels(facts.endpoint, denied.code).inc()
        raise


def _abandon(admitting: asyncio.Task[Admission]) -> None:
    if admitting.cancelled() or admitting.exception() is not None:
        return
    admission = admitting.result()
    admission.finish(Ending.ABORTED, Code.CLIENT_GONE)
    admission.settle()


async def _admit(principal: Principal, facts: RequestFacts, fleet: FleetFacts | None) -> Admission:
    keys = ReservationKeys(principal.tenant_id, principal.key_id, facts.request_id)
    is_fresh, has_place, refusal = False, False, store_unavailable()
    try:
        for _ in range(MAX_ATTEMPTS):
            decision = _decide(principal, facts, fleet)
            if isinstance(decision, Denied):
                principal, is_fresh = await _confirmed_or_refused(principal, decision), True
                continue
            reservation = Reservation(keys, _reservation_fields(principal, facts, decision.max_tokens))
            outcome = await reserve(reservation, _policy(principal), is_fresh=is_fresh)
            if isinstance(outcome, NoRoom):
                refusal = _no_room(outcome)
                if outcome.rate is None and await somebody_left(principal.tenant_id):
                    continue
                raise refusal
            has_place = has_place or isinstance(outcome, Reserved)
            if isinstance(outcome, Reserved) and is_current(principal):
                ADMITTED.labels(facts.endpoint).inc()
                return Admission(principal, facts, reservation, decision.max_tokens, outcome.rate)
            principal, is_fresh = await reload_principal(principal), True
        raise refusal
    except Denied:
        if has_place:
            settler().release(keys)
        raise


def _decide(principal: Principal, facts: RequestFacts, fleet: FleetFacts | None) -> Admit | Denied:
    return decide(principal, facts, fleet, default_output_tokens=settings.OCTAVO_DEFAULT_OUTPUT_TOKENS)


async def _confirmed_or_refused(principal: Principal, denied: Denied) -> Principal:
    """An older policy must not refuse what the present one allows."""
    present = await confirmed(principal)
    if present == principal:
        raise denied
    return present


def _policy(principal: Principal) -> Policy:
    return Policy(
        principal.policy_epoch,
        tenant=ScopeLimits(principal.max_concurrent, principal.requests_per_minute),
        key=ScopeLimits(principal.key_max_concurrent, principal.key_requests_per_minute),
    )


def _reservation_fields(principal: Principal, facts: RequestFacts, max_tokens: int) -> dict[str, str]:
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
        "reserved_tokens": str(facts.prompt_tokens + max_tokens),
    }


def _no_room(outcome: NoRoom) -> Denied:
    whose = "this account" if outcome.scope == "tenant" else "this API key"
    if outcome.rate is None:
        return Denied(
            Code.CONCURRENCY_LIMIT_EXCEEDED,
            f"At most {outcome.limit} requests of {whose} may run at once.",
            retry_after_s=1.0,
        )
    return Denied(
        Code.RATE_LIMIT_EXCEEDED,
        f"Rate limit of {whose} reached: {outcome.limit} requests per minute.",
        retry_after_s=outcome.rate.retry_after_s,
        headers=rate_headers(outcome.rate),
    )
