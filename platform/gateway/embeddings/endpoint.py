"""POST /v1/embeddings."""

from collections.abc import Sequence

from admission.admission import Admission
from api_keys.authentication import authenticate
from api_keys.principal import Principal
from gateway.embeddings.answer import answer_of
from gateway.embeddings.journey import embed
from gateway.embeddings.order import embedding_order
from gateway.runs.journey import Caller
from gateway.services import Services
from gateway.transport.connection import serve_body
from gateway.transport.exchange import Exchange


async def embeddings(exchange: Exchange, services: Services) -> None:
    principal = await authenticate(exchange.header(b"authorization"))
    await serve_body(exchange, lambda raw: _serve(exchange, services, principal, raw))


async def _serve(exchange: Exchange, services: Services, principal: Principal, raw: bytes) -> None:
    order = await embedding_order(services, principal, raw)
    output = WholeOutput(exchange)
    await embed(services, Caller(principal, exchange.request_id, exchange.address), order, output)
    await exchange.send_bytes(200, await answer_of(order, output.vectors))


class WholeOutput:
    """Nothing is sent before the request is settled."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self.vectors: Sequence[bytes] = ()

    async def admitted(self, admission: Admission) -> None:
        self._exchange.add_headers(admission.headers())

    async def embedded(self, vectors: Sequence[bytes], cached_tokens: int) -> None:
        self.vectors = vectors
