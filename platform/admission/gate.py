"""The one door: nothing reaches an engine without passing it, and what passed it is settled exactly once."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from admission.admission import Admission
from admission.admitting import admit
from admission.facts import FleetFacts, FleetLoad, RequestFacts
from admission.metrics import DENIED, GATE_SECONDS
from api_keys.authentication import forget_principals
from api_keys.principal import Principal
from inference_engine.contract.codes import Code
from quotas.leases import lease_keeper
from quotas.store import on_new_run
from tenants.errors import Denied
from usage.models import Ending

on_new_run(forget_principals)


@asynccontextmanager
async def gate(
    principal: Principal,
    facts: RequestFacts,
    fleet: FleetFacts | None = None,
    load: FleetLoad | None = None,
) -> AsyncIterator[Admission]:
    """Raises Denied before the body runs, or not at all. Leaving it, however, settles in the background.

    Without `fleet` the model's limits are not looked at, without `load` nothing is shed.
    """
    admission = await _admitted_or_abandoned(admit(principal, facts, fleet, load), facts.endpoint)
    lease_keeper().hold(admission)
    try:
        yield admission
    except BaseException as error:
        admission.finish_with(error)
        raise
    finally:
        lease_keeper().drop(admission)
        admission.settle()


async def _admitted_or_abandoned(work: Coroutine[Any, Any, Admission], endpoint: str) -> Admission:
    """A client that goes away meanwhile can't leave a reservation behind that nobody knows of."""
    admitting = asyncio.create_task(work)
    try:
        with GATE_SECONDS.time():
            return await asyncio.shield(admitting)
    except asyncio.CancelledError:
        admitting.add_done_callback(_abandon)
        raise
    except Denied as denied:
        DENIED.labels(endpoint, denied.code).inc()
        raise


def _abandon(admitting: asyncio.Task[Admission]) -> None:
    if admitting.cancelled() or admitting.exception() is not None:
        return
    admission = admitting.result()
    admission.finish(Ending.ABORTED, Code.CLIENT_GONE)
    admission.settle()
