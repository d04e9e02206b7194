"""Who may come in to files and batches: asked on the event loop, before a byte of the body is stored."""

from typing import Any

from admission.decision import wrong_network
from admission.freshness import confirmed
from api_keys.authentication import authenticate
from api_keys.networks import is_within
from api_keys.principal import Principal
from api_keys.scopes import Scope as KeyScope
from gateway.transport.exchange import MAX_HEADER_BYTES, Exchange, Receive, Scope, Send
from inference_engine.contract.codes import Code
from tenants.errors import Denied
from tenants.models import Feature

PRINCIPAL = "octavo.principal"
"""Where Django's views find them in the ASGI scope."""


class Door:
    """Passes a request on to `application` with its principal, or answers it."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, receive, send)
        try:
            principal = await caller_of(exchange)
        except Denied as denied:
            denied.headers["connection"] = "close"  # nobody will read the body
            await exchange.send_error(denied)
            return
        await self._application({**scope, PRINCIPAL: principal}, receive, send)


async def caller_of(exchange: Exchange) -> Principal:
    """Raises Denied."""
    if exchange.num_header_bytes > MAX_HEADER_BYTES:
        message = f"The headers are larger than the {MAX_HEADER_BYTES} bytes accepted here."
        raise Denied(Code.HEADERS_TOO_LARGE, message)
    known = await authenticate(exchange.header(b"authorization"), KeyScope.BATCH)
    principal = await confirmed(known)
    if principal.is_suspended:
        raise Denied(Code.INSUFFICIENT_PERMISSIONS, "This account is suspended.")
    if not is_within(principal.allowed_networks, exchange.address):
        raise wrong_network()
    if principal.features is not None and Feature.BULK not in principal.features:
        raise Denied(Code.INSUFFICIENT_PERMISSIONS, "This account may not use: batches.")
    return principal
