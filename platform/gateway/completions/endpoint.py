"""POST /v1/completions."""

from api_keys.authentication import authenticate
from api_keys.principal import Principal
from gateway.completions.body import CompletionBody
from gateway.completions.format import CompletionFormat
from gateway.models_endpoint import text_model
from gateway.orders.neutral import NEUTRAL, check_neutral
from gateway.orders.order import Order, order_of
from gateway.orders.prompts import echoes_of, encode_prompts
from gateway.runs.journey import serve
from gateway.services import Services
from gateway.transport.connection import serve_body
from gateway.transport.exchange import Exchange
from gateway.transport.strict_json import StrictDecoder
from inference_engine.contract.events import Description

DEFAULT_MAX_TOKENS = 16
"""The interface's own default."""

_decoder = StrictDecoder(CompletionBody)


async def completions(exchange: Exchange, services: Services) -> None:
    principal = await authenticate(exchange.header(b"authorization"))
    await serve_body(exchange, lambda raw: _serve(exchange, services, principal, raw))


async def _serve(exchange: Exchange, services: Services, principal: Principal, raw: bytes) -> None:
    order, description = await completion_order(services, principal, raw)
    await serve(exchange, services, principal, order, description, CompletionFormat)


async def completion_order(services: Services, principal: Principal, raw: bytes) -> tuple[Order, Description]:
    """What a body asks for, and of which model. Raises Denied."""
    body: CompletionBody = _decoder.decode(raw)
    check_neutral(body, NEUTRAL)
    description = await text_model(services, principal, body.model)
    text = await services.texts.get(description)
    prompts = await encode_prompts(body.prompt, text, description)
    order = order_of(
        body,
        description,
        endpoint="/v1/completions",
        prompts=prompts,
        max_tokens=body.max_tokens or DEFAULT_MAX_TOKENS,
        logprobs=body.logprobs,
        best_of=body.best_of,
        echoes=echoes_of(body.prompt, prompts, text) if body.echo else None,
    )
    return order, description
