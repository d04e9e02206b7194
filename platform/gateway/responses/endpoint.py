"""POST /v1/responses."""

from api_keys.authentication import authenticate
from api_keys.principal import Principal
from gateway.responses.body import ResponseBody
from gateway.responses.errors import RESPONSE_ERRORS
from gateway.responses.request import read_request
from gateway.responses.respond import respond
from gateway.runs.event_answer import sink_of
from gateway.runs.journey import Caller
from gateway.services import Services
from gateway.transport.connection import serve_body
from gateway.transport.exchange import Exchange
from gateway.transport.strict_json import StrictDecoder

decoder = StrictDecoder(ResponseBody)


async def create_response(exchange: Exchange, services: Services) -> None:
    principal = await authenticate(exchange.header(b"authorization"))
    await serve_body(exchange, lambda raw: _serve(exchange, services, principal, raw))


async def _serve(exchange: Exchange, services: Services, principal: Principal, raw: bytes) -> None:
    exchange.errors = RESPONSE_ERRORS
    body: ResponseBody = decoder.decode(raw)
    request, description = await read_request(services, principal, body, exchange.id)
    caller = Caller(principal, exchange.request_id, exchange.address)
    await respond(services, caller, request, description, sink_of(exchange, bool(body.stream)))
