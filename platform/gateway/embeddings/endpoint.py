"""POST /v1/embeddings: no model that is made for it can be served, so a valid request is told so."""

from api_keys.principal import Principal
from gateway.callers import caller_of
from gateway.embeddings.body import EmbeddingsBody
from gateway.limits import GENERATION_BODY_BYTES, READ_TIMEOUT_S
from gateway.models_endpoint import described
from gateway.services import Services
from gateway.transport.exchange import Exchange
from gateway.transport.strict_json import StrictDecoder
from inference_engine.contract.codes import Code
from tenants.errors import Denied

_decoder = StrictDecoder(EmbeddingsBody)


async def embeddings(exchange: Exchange, services: Services) -> None:
    principal: Principal = await caller_of(exchange)
    raw = await exchange.read_body(GENERATION_BODY_BYTES, READ_TIMEOUT_S)
    body: EmbeddingsBody = _decoder.decode(raw)
    model = described(services, principal, body.model).model
    message = f"The model '{model}' generates text; it was not made for embeddings."
    raise Denied(Code.UNSUPPORTED_FEATURE, message, param="model")
