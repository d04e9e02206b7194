"""Who may open a socket: a key in the Authorization header, or a ticket in the sub-protocol."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from admission.freshness import confirmed
from api_keys.principal import Principal
from gateway.callers import check_standing, checked_caller
from gateway.live.tickets import redeemed
from gateway.transport.exchange import MAX_HEADER_BYTES
from inference_engine.contract.codes import Code
from tenants.errors import Denied

PATH = "/v1/responses"
PROTOCOL = "octavo.responses"
TICKET_PREFIX = "octavo.ticket."


@dataclass(frozen=True, slots=True)
class Opening:
    principal: Principal
    protocol: str | None
    """The sub-protocol to agree to."""
    address: str


async def opening_of(scope: dict[str, Any]) -> Opening:
    """Raises Denied."""
    if scope["path"] != PATH:
        raise Denied(Code.NOT_FOUND, f"There is no socket at {scope['path'][:200]}.")
    if sum(len(name) + len(value) + 4 for name, value in scope["headers"]) > MAX_HEADER_BYTES:
        message = f"The headers are larger than the {MAX_HEADER_BYTES} bytes accepted here."
        raise Denied(Code.HEADERS_TOO_LARGE, message)
    address = (scope.get("client") or ("",))[0]
    offered: list[str] = scope.get("subprotocols") or []
    tickets = [one for one in offered if one.startswith(TICKET_PREFIX)]
    if tickets:
        principal = await _with_ticket(scope, offered, tickets)
        check_standing(principal, address)
    else:
        principal = await checked_caller(_header(scope, b"authorization"), address)
    return Opening(principal, PROTOCOL if PROTOCOL in offered else None, address)


async def _with_ticket(scope: dict[str, Any], offered: list[str], tickets: list[str]) -> Principal:
    """A browser: it must come from a page that we know, and it wants its protocol agreed to."""
    if not is_known_origin(_header(scope, b"origin"), _header(scope, b"host")):
        raise Denied(Code.INSUFFICIENT_PERMISSIONS, "Pages of this origin may not open sockets here.")
    if PROTOCOL not in offered or len(tickets) > 1:
        message = f"Offer the sub-protocols '{PROTOCOL}' and one '{TICKET_PREFIX}...'."
        raise Denied(Code.INVALID_REQUEST, message)
    return await confirmed(await redeemed(tickets[0].removeprefix(TICKET_PREFIX)))


def is_known_origin(origin: bytes | None, host: bytes | None) -> bool:
    """Of this very host, or one of OCTAVO_SOCKET_ORIGINS."""
    if not origin or origin == b"null":
        return False
    text = origin.decode("latin-1").lower().rstrip("/")
    if text in settings.OCTAVO_SOCKET_ORIGINS:
        return True
    try:
        place = urlsplit(text).netloc
    except ValueError:
        return False
    return bool(place) and host is not None and place == host.decode("latin-1").lower()


def _header(scope: dict[str, Any], name: bytes) -> bytes | None:
    return next((value for key, value in scope["headers"] if key == name), None)
