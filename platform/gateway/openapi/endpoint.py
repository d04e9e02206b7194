"""GET /v1/openapi.json: public, because it tells nothing of this installation."""

from functools import cache

import msgspec

from gateway.services import Services
from gateway.transport.exchange import Exchange

from .document import document_of
from .listed import OPERATIONS

VERSION = "1"
"""Of the interface."""


async def openapi(exchange: Exchange, services: Services) -> None:
    await exchange.send_bytes(200, _encoded())


@cache
def _encoded() -> bytes:
    return msgspec.json.encode(document_of(OPERATIONS, VERSION))
