"""Origins and tickets."""

from typing import Any

import pytest
import redis

from api_keys.authentication import authenticate
from api_keys.models import ApiKey
from api_keys.principal import Principal
from api_keys.services import revoke_key, rotate_key
from gateway.live import tickets
from gateway.live.handshake import PATH, PROTOCOL, TICKET_PREFIX, is_known_origin, opening_of
from gateway.live.tickets import new_ticket, redeemed
from inference_engine.contract.codes import Code
from tenants.errors import Denied


@pytest.mark.parametrize(
    ("origin", "is_known"),
    [
        (b"https://api.example", True),
        (b"https://API.example/", True),
        (b"https://app.example:8443", True),
        (b"https://app.example", False),
        (b"https://api.example.evil.test", False),
        (b"https://evil.test/api.example", False),
        (b"null", False),
        (b"", False),
        (None, False),
        (b"https://[broken", False),
        ("https://käse.example".encode(), False),
    ],
)
def test_origins(settings: Any, origin: bytes | None, is_known: bool) -> None:
    settings.OCTAVO_SOCKET_ORIGINS = frozenset({"https://app.example:8443"})
    assert is_known_origin(origin, b"api.example") is is_known


async def test_a_ticket_is_good_once_and_redis_holds_its_hash_only(
    loop_store: redis.Redis, principal: Principal
) -> None:
    ticket = await new_ticket(principal)
    names = list(loop_store.scan_iter("octavo:ticket:*"))
    assert not any(ticket.secret.encode() in name for name in names)
    assert all(0 < loop_store.ttl(name) <= tickets.LIFE_S for name in names)
    assert (await redeemed(ticket.secret)).key_id == principal.key_id
    for wrong in (ticket.secret, "", "x" * 5000, "\udcff"):
        with pytest.raises(Denied) as denied:
            await redeemed(wrong)
        assert denied.value.code is Code.INVALID_API_KEY


async def test_tickets_are_counted(
    loop_store: redis.Redis, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tickets, "MAX_A_MINUTE", 0)
    with pytest.raises(Denied) as denied:
        await new_ticket(principal)
    assert denied.value.code is Code.RATE_LIMIT_EXCEEDED and denied.value.retry_after_s


def scope(*protocols: str, origin: bytes = b"http://here") -> dict[str, Any]:
    headers = [(b"host", b"here"), (b"origin", origin)]
    return {"path": PATH, "headers": headers, "subprotocols": list(protocols), "client": ("127.0.0.1", 1)}


async def test_a_foreign_page_does_not_use_the_ticket_up(
    loop_store: redis.Redis, principal: Principal
) -> None:
    offered = (PROTOCOL, TICKET_PREFIX + (await new_ticket(principal)).secret)
    with pytest.raises(Denied) as denied:
        await opening_of(scope(*offered, origin=b"http://there"))
    assert denied.value.code is Code.INSUFFICIENT_PERMISSIONS
    with pytest.raises(Denied) as incomplete:
        await opening_of(scope(offered[1]))
    assert incomplete.value.code is Code.INVALID_REQUEST
    opening = await opening_of(scope(*offered))
    assert (opening.protocol, opening.principal.key_id) == (PROTOCOL, principal.key_id)


async def test_a_ticket_of_a_revoked_key_opens_nothing(
    loop_store: redis.Redis, principal: Principal, key_and_secret: tuple[ApiKey, str], in_thread: Any
) -> None:
    ticket = await new_ticket(principal)
    await in_thread(revoke_key, key_and_secret[0])
    with pytest.raises(Denied) as denied:
        await opening_of(scope(PROTOCOL, TICKET_PREFIX + ticket.secret))
    assert denied.value.code is Code.INVALID_API_KEY


async def test_a_ticket_drawn_with_a_rotated_secret_opens_nothing(
    loop_store: redis.Redis, key_and_secret: tuple[ApiKey, str], in_thread: Any
) -> None:
    key, old = key_and_secret
    of_old = await new_ticket(await authenticate(f"Bearer {old}"))
    _, new = await in_thread(rotate_key, key)
    of_new = await new_ticket(await authenticate(f"Bearer {new}"))
    assert (
        await opening_of(scope(PROTOCOL, TICKET_PREFIX + of_new.secret))
    ).principal.key_id == key.public_id
    with pytest.raises(Denied) as denied:
        await opening_of(scope(PROTOCOL, TICKET_PREFIX + of_old.secret))
    assert denied.value.code is Code.INVALID_API_KEY
