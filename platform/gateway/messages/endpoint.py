"""POST /v1/messages and /v1/messages/count_tokens."""

from api_keys.authentication import authenticate
from api_keys.principal import Principal
from gateway.callers import checked_caller
from gateway.messages.answer import PING, MessageAnswer
from gateway.messages.body import CountTokensBody, MessagesBody
from gateway.messages.request import messages_order, num_tokens, renamed
from gateway.runs.event_answer import EventOutput, sink_of
from gateway.runs.journey import Caller, travel
from gateway.services import Services
from gateway.transport.connection import serve_body
from gateway.transport.exchange import Exchange
from gateway.transport.strict_json import StrictDecoder
from tenants.errors import Denied

_decoder = StrictDecoder(MessagesBody)
_count_decoder = StrictDecoder(CountTokensBody)


async def create_message(exchange: Exchange, services: Services) -> None:
    principal = await authenticate(authorization_of(exchange))
    await serve_body(exchange, lambda raw: _serve(exchange, services, principal, raw))


async def _serve(exchange: Exchange, services: Services, principal: Principal, raw: bytes) -> None:
    body: MessagesBody = _decoder.decode(raw)
    order, description = await messages_order(services, principal, body)
    answer = MessageAnswer(exchange.id, order)
    sink = sink_of(exchange, order.stream, PING.sse())
    caller = Caller(principal, exchange.request_id, exchange.address)
    try:
        run = await travel(services, caller, order, description, EventOutput(answer, sink))
    except Denied as denied:
        raise renamed(denied) from None
    choice = run.choices[0]
    await sink.end(answer.ending(choice), answer.whole(choice))


async def count_tokens(exchange: Exchange, services: Services) -> None:
    principal = await checked_caller(authorization_of(exchange), exchange.address)
    await serve_body(exchange, lambda raw: _count(exchange, services, principal, raw))


async def _count(exchange: Exchange, services: Services, principal: Principal, raw: bytes) -> None:
    body: CountTokensBody = _count_decoder.decode(raw)
    await exchange.send_json(200, {"input_tokens": await num_tokens(services, principal, body)})


def authorization_of(exchange: Exchange) -> bytes | None:
    """A key of this interface may come in a header of its own."""
    key = exchange.header(b"x-api-key")
    return exchange.header(b"authorization") if key is None else b"Bearer " + key
