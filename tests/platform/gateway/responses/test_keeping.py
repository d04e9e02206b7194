"""Keeping responses beside the event loop: together, and never at the answer's cost."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

import pytest
from django.db import OperationalError

from conversations import services
from conversations.models import StoredResponse
from gateway.responses import keeping
from gateway.responses.keeping import ResponseStore
from inference_engine.contract.codes import Code
from tenants.errors import Denied
from tenants.models import Tenant


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a busy machine's database; the test of a slow one has less."""
    monkeypatch.setattr(keeping, "PATIENCE_S", 20.0)


@pytest.fixture
async def store() -> AsyncIterator[ResponseStore]:
    store = ResponseStore()
    yield store
    await store.stop()


def response(tenant_id: int, name: str) -> StoredResponse:
    now = datetime.now(UTC)
    return StoredResponse(
        id=name, tenant_id=tenant_id, model="m", body="{}", input_items="[]", created_at=now, expires_at=now
    )


async def test_what_is_kept_can_be_read_at_once(tenant: Tenant, store: ResponseStore) -> None:
    kept = await asyncio.gather(*(store.keep(response(tenant.pk, f"resp_{n}")) for n in range(5)))
    assert kept == [True] * 5
    found = await store.find(str(tenant.pk), "resp_3")
    assert found is not None and found.pk == "resp_3"
    assert await store.delete(str(tenant.pk), "resp_3") is True
    assert await store.find(str(tenant.pk), "resp_3") is None


async def test_those_that_wait_are_written_together(
    monkeypatch: pytest.MonkeyPatch, store: ResponseStore
) -> None:
    batches: list[int] = []
    go_on = threading.Event()

    def slow(responses: Sequence[StoredResponse]) -> set[str]:
        batches.append(len(responses))
        go_on.wait(20)
        return {one.pk for one in responses}

    monkeypatch.setattr(services, "keep", slow)
    waiting = [asyncio.create_task(store.keep(response(1, str(number)))) for number in range(10)]
    while not batches:
        await asyncio.sleep(0.005)
    go_on.set()
    assert await asyncio.gather(*waiting) == [True] * 10
    assert sum(batches) == 10 and len(batches) <= 2


async def test_a_database_that_is_away_costs_the_copy_only(
    monkeypatch: pytest.MonkeyPatch, store: ResponseStore
) -> None:
    def away(responses: Sequence[StoredResponse]) -> set[str]:
        raise OperationalError("away")

    monkeypatch.setattr(services, "keep", away)
    assert await store.keep(response(1, "resp_a")) is False


async def test_a_database_that_is_slow_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, store: ResponseStore
) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(keeping, "PATIENCE_S", 0.05)
    monkeypatch.setattr(keeping, "MAX_WAITING", 1)
    monkeypatch.setattr(services, "keep", lambda responses: go_on.wait(20) and set())
    assert await store.keep(response(1, "resp_a")) is False
    in_line = asyncio.create_task(store.keep(response(1, "resp_b")))
    await asyncio.sleep(0)
    assert await store.keep(response(1, "resp_c")) is False, "the line is full"
    go_on.set()
    assert await in_line is False


async def test_reading_from_a_database_that_is_away_is_a_denial(
    monkeypatch: pytest.MonkeyPatch, store: ResponseStore
) -> None:
    def away(tenant_id: int, response_id: str) -> None:
        raise OperationalError("away")

    monkeypatch.setattr("conversations.selectors.find_response", away)
    with pytest.raises(Denied) as denied:
        await store.find("1", "resp_a")
    assert denied.value.code is Code.STORE_UNAVAILABLE
