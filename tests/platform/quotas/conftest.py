"""Reservations without a database: policies and keys made by hand. A Redis to break."""

from collections.abc import AsyncIterator, Callable

import pytest

from quotas.limits import LimitKind, LimitRule, LimitScope, Policy
from quotas.reservation_keys import ReservationKeys
from quotas.reservations import Reservation
from quotas.store import close_async_redis
from servers_of_tests import RedisServer


@pytest.fixture
def reservation() -> Callable[..., Reservation]:
    def make(
        request_id: str = "r1", tenant_id: str = "7", key_id: str = "k", model: str = "m", tokens: int = 0
    ) -> Reservation:
        keys = ReservationKeys(tenant_id, key_id, request_id, model)
        fields = {
            "request_id": request_id,
            "tenant_id": tenant_id,
            "tenant_name": "Acme",
            "key_id": key_id,
            "key_name": "k",
            "model": model,
            "endpoint": "/v1/completions",
        }
        return Reservation(keys, tokens, fields)

    return make


@pytest.fixture
def policy() -> Callable[..., Policy]:
    def make(epoch: int = 1, concurrent: int | None = None, per_minute: int | None = None) -> Policy:
        values = {LimitKind.CONCURRENT: concurrent, LimitKind.REQUESTS_PER_MINUTE: per_minute}
        rules = [LimitRule(LimitScope.TENANT, kind, value) for kind, value in values.items() if value]
        return Policy(epoch, tuple(rules))

    return make


@pytest.fixture
async def server(redis_server: RedisServer, settings: object) -> AsyncIterator[RedisServer]:
    settings.REDIS_URL = redis_server.url  # type: ignore[attr-defined]
    yield redis_server
    redis_server.resume()
    await close_async_redis()
