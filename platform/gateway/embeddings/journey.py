"""A request for embeddings on its way through the gate to an engine and back: of endpoints and of batches."""

from collections.abc import Sequence
from typing import Protocol

from admission.admission import Admission
from admission.gate import gate
from fleet.failover import Route
from gateway.embeddings.order import EmbeddingOrder
from gateway.embeddings.run import EmbeddingRun
from gateway.runs.journey import Caller
from gateway.services import Services


class EmbeddingOutput(Protocol):
    """Where vectors go."""

    async def admitted(self, admission: Admission) -> None:
        """The gate is passed; an engine may still refuse."""

    async def embedded(self, vectors: Sequence[bytes], cached_tokens: int) -> None:
        """All are there, and the request isn't settled yet."""


async def embed(services: Services, caller: Caller, order: EmbeddingOrder, output: EmbeddingOutput) -> None:
    """One admission for all inputs, settled when this returns. Raises Denied."""
    facts = order.facts(caller.request_id, caller.address)
    async with gate(caller.principal, facts, load=services.fleet.load(order.model)) as admission:
        await output.admitted(admission)
        route = Route(services.fleet, services.fleet.route(order.model))
        async with EmbeddingRun(order, admission, route) as run:
            vectors = await run.vectors()
            await output.embedded(vectors, run.cached_tokens)
