"""Tickets: what a browser opens a socket with, since it can send no key and must not know one.

Whoever has a key asks for a ticket and hands it to a browser, which offers it as a sub-protocol. It is good
for one socket and half a minute. Redis holds its hash only.
"""

import hashlib
import secrets
import time
from typing import NamedTuple, cast

from api_keys.authentication import principal_for
from api_keys.principal import Principal
from api_keys.scopes import Scope
from inference_engine.contract.codes import Code
from quotas.store import async_redis, closed_when_unreachable
from tenants.errors import Denied

LIFE_S = 30
MAX_A_MINUTE = 600
"""Of one key."""
SECRET_BYTES = 32
MAX_TICKET_CHARS = 128


class Ticket(NamedTuple):
    secret: str
    expires_at: int
    """Unix seconds."""


async def new_ticket(principal: Principal) -> Ticket:
    """Raises Denied: RATE_LIMIT_EXCEEDED, STORE_UNAVAILABLE."""
    secret, now = secrets.token_urlsafe(SECRET_BYTES), int(time.time())
    counter = f"octavo:tickets:{principal.key_id}:{now // 60}"
    async with closed_when_unreachable(), async_redis().pipeline(transaction=False) as pipeline:
        pipeline.incr(counter)
        pipeline.expire(counter, 120)
        num_drawn = (await pipeline.execute())[0]
    if num_drawn > MAX_A_MINUTE:
        message = f"At most {MAX_A_MINUTE} tickets a minute are given to one API key."
        raise Denied(Code.RATE_LIMIT_EXCEEDED, message, retry_after_s=60.0 - now % 60)
    async with closed_when_unreachable():
        await async_redis().set(_name(secret), _drawn_with(principal), ex=LIFE_S)
    return Ticket(secret, now + LIFE_S)


async def redeemed(secret: str) -> Principal:
    """Once. Raises Denied: INVALID_API_KEY, STORE_UNAVAILABLE."""
    drawn_with = None
    if 0 < len(secret) <= MAX_TICKET_CHARS:
        async with closed_when_unreachable():
            drawn_with = cast("bytes | None", await async_redis().getdel(_name(secret)))
    if drawn_with is None:
        raise Denied(Code.INVALID_API_KEY, "This ticket was used, has expired or never was one.")
    key_id, _, proof = drawn_with.decode().partition(":")
    return await principal_for(key_id, Scope.INFERENCE, bytes.fromhex(proof) or None)


def _drawn_with(principal: Principal) -> str:
    """A rotation of the key ends what its secret until then began."""
    return f"{principal.key_id}:{(principal.proof or b'').hex()}"


def _name(secret: str) -> str:
    digest = hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
    return f"octavo:ticket:{digest}"
