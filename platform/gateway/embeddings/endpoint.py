"""POST /v1/embeddings."""

from collections.abc import Callable, Sequence

from admission.admission import Admission
from admission.gate import gate
from api_keys.authentication import authenticate
from api_keys.principal import Principal
from fleet.failover import Route
from gateway.embeddings.answer import answer_of
from gateway.embeddings.order import EmbeddingOrder, embedding_order
from gateway.embeddings.run import EmbeddingRun
from gateway.runs.journey import Caller
from gateway.services import Services
from gateway.transport.connection import serve_body
from gateway.transport.exchange import Exchange


async def embeddings(exchange: Exchange, services: Services) -> None:
    principal = await authenticate(exchange.header(b"authorization"))
    await serve_body(exchange, lambda raw: _serve(exchange, services, principal, raw))


async def _serve(exchange: Exchange, services: Services, principal: Principal, raw: bytes) -> None:
    order = await embedding_order(services, principal, raw)
    caller = Caller(principal, exchange.request_id, exchange.address)
    vectors = await embed(services, caller, order, lambda one: exchange.add_headers(one.headers()))
    await exchange.send_bytes(200, await answer_of(order, vectors))


async def embed(
    services: Services, caller: Caller, order: EmbeddingOrder, admitted: Callable[[Admission], None]
) -> Sequence[bytes]:
    """One admission for all inputs, settled when this returns. Raises Denied."""
    facts = order.facts(caller.request_id, caller.address)
    async with gate(caller.principal, facts, load=services.fleet.load(order.model)) as admission:
        admitted(admission)
        route = Route(services.fleet, services.fleet.route(order.model))
        async with EmbeddingRun(order, admission, route) as run:
            return await run.vectors()
