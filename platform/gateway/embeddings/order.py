"""Which vectors a body asks for."""

from dataclasses import dataclass

from admission.facts import RequestFacts
from api_keys.principal import Principal
from gateway.embeddings.body import EmbeddingsBody
from gateway.models_endpoint import embedding_model
from gateway.orders.prompts import encode_prompts
from gateway.orders.room import check_room
from gateway.services import Services
from gateway.transport.strict_json import StrictDecoder
from inference_engine.contract.codes import Code
from inference_engine.contract.events import Embedding
from tenants.errors import Denied

ENDPOINT = "/v1/embeddings"
MAX_INPUTS = 2048

_decoder = StrictDecoder(EmbeddingsBody)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingOrder:
    model: str
    inputs: list[list[int]]
    """Token ids."""
    embedding: Embedding
    """What the model gives."""
    dimensions: int | None
    """Numbers that are wanted, the first ones; None: all."""
    is_base64: bool
    service_tier: str | None
    user: str

    @property
    def prompt_tokens(self) -> int:
        return sum(map(len, self.inputs))

    def facts(self, request_id: str, address: str) -> RequestFacts:
        """For the gate: the tokens of all inputs together, and no output."""
        return RequestFacts(
            request_id=request_id,
            model=self.model,
            endpoint=ENDPOINT,
            prompt_tokens=self.prompt_tokens,
            max_tokens=0,
            user=self.user,
            service_tier=self.service_tier,
            address=address,
        )


async def embedding_order(services: Services, principal: Principal, raw: bytes) -> EmbeddingOrder:
    """Raises Denied."""
    body: EmbeddingsBody = _decoder.decode(raw)
    description, embedding = await embedding_model(services, principal, body.model)
    if body.dimensions is not None and body.dimensions > embedding.size:
        message = f"This model's vectors have {embedding.size} dimensions, fewer than {body.dimensions}."
        raise Denied(Code.INVALID_REQUEST, message, param="dimensions")
    text = await services.texts.get(description)
    inputs = await encode_prompts(body.input, text, description, param="input", most=MAX_INPUTS)
    check_room(description, inputs)
    return EmbeddingOrder(
        model=description.model,
        inputs=inputs,
        embedding=embedding,
        dimensions=body.dimensions,
        is_base64=body.encoding_format == "base64",
        service_tier=body.service_tier,
        user=body.user or "",
    )
