"""POST /v1/realtime/tickets: with a key, for a browser."""

from msgspec import Struct

from gateway.callers import caller_of
from gateway.limits import READ_TIMEOUT_S
from gateway.live.handshake import PROTOCOL, TICKET_PREFIX
from gateway.live.tickets import new_ticket
from gateway.services import Services
from gateway.transport.exchange import Exchange
from gateway.transport.strict_json import StrictDecoder

MAX_BODY_BYTES = 1024


class TicketBody(Struct, forbid_unknown_fields=True):
    """Nothing may be asked for."""


_decoder = StrictDecoder(TicketBody)


async def create_ticket(exchange: Exchange, services: Services) -> None:
    principal = await caller_of(exchange)
    body = await exchange.read_body(MAX_BODY_BYTES, READ_TIMEOUT_S)
    if body:
        _decoder.decode(body)
    ticket = await new_ticket(principal)
    shown = {
        "object": "realtime.ticket",
        "ticket": ticket.secret,
        "expires_at": ticket.expires_at,
        "protocols": [PROTOCOL, TICKET_PREFIX + ticket.secret],
    }
    await exchange.send_json(200, shown, {"cache-control": "no-store"})
