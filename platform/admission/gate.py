"""The one door: nothing reaches an engine without passing it, and what passed it is settled exactly once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from admission.admission import Admission
from admission.admitting import admit
from admission.facts import FleetFacts, FleetLoad, RequestFacts
from admission.metrics import DENIED, GATE_SECONDS
from api_keys.authentication import forget_principals
from api_keys.principal import Principal
from quotas.leases import lease_keeper
from quotas.store import on_new_run
from tenants.errors import Denied

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
    try:
        with GATE_SECONDS.time():
            admission = await admit(principal, facts, fleet, load)
    except Denied as denied:
        DENIED.labels(facts.endpoint, denied.code).inc()
        raise
    lease_keeper().hold(admission)
    try:
        yield admission
    except BaseException as error:
        admission.finish_with(error)
        raise
    finally:
        lease_keeper().drop(admission)
        admission.settle()
