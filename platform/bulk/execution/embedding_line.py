"""A line that asks for embeddings."""

from collections.abc import Sequence
from dataclasses import replace

from msgspec import Raw

from admission.admission import Admission
from api_keys.principal import Principal
from bulk.execution.line_answers import BULK_TIER
from bulk.execution.line_keeping import LineKeeping
from gateway.embeddings.answer import answer_of
from gateway.embeddings.journey import embed
from gateway.embeddings.order import EmbeddingOrder, embedding_order
from gateway.runs.journey import Caller
from gateway.services import Services
from inference_engine.contract.codes import FinishReason


async def read_embeddings(services: Services, principal: Principal, body: bytes) -> EmbeddingOrder:
    """Raises Denied."""
    return replace(await embedding_order(services, principal, body), service_tier=BULK_TIER)


async def embed_line(services: Services, caller: Caller, order: EmbeddingOrder, keeping: LineKeeping) -> None:
    """Returns once the answer is kept. Raises Denied, ClaimOvertaken."""
    await embed(services, caller, order, EmbeddingLineOutput(order, keeping))


class EmbeddingLineOutput:
    def __init__(self, order: EmbeddingOrder, keeping: LineKeeping) -> None:
        self._order, self._keeping = order, keeping

    async def admitted(self, admission: Admission) -> None:
        self._keeping.admitted(admission)

    async def embedded(self, vectors: Sequence[bytes], cached_tokens: int) -> None:
        order = self._order
        tokens = {"prompt_tokens": order.prompt_tokens, "cached_tokens": cached_tokens, "output_tokens": 0}
        body = Raw(await answer_of(order, vectors))
        await self._keeping.keep(order.model, body, tokens, FinishReason.STOP.value)
