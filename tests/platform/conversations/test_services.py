"""Stored responses on both databases: kept together, continued, swept, and never another tenant's."""

from datetime import UTC, datetime, timedelta

import pytest

from conversations.models import StoredResponse
from conversations.selectors import conversation_up_to, find_response
from conversations.services import delete_expired, delete_response, keep
from tenants.models import Tenant
from tenants.services import create_tenant

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def acme(any_database: str) -> Tenant:
    return create_tenant("Acme")


def response(tenant: Tenant, name: str, *before: str, days: float = 30, text: str = "{}") -> StoredResponse:
    return StoredResponse(
        id=f"resp_{name}",
        tenant_id=tenant.pk,
        model="m",
        body=text,
        input_items="[]",
        ancestors=[f"resp_{one}" for one in before],
        created_at=NOW,
        expires_at=NOW + timedelta(days=days),
    )


def test_what_is_kept_is_found_by_its_tenant_only(acme: Tenant) -> None:
    other = create_tenant("Other")
    text = '{"text": "zero \\u0000 and \\ud83d"}'
    assert keep([response(acme, "a", text=text), response(other, "b")]) == {"resp_a", "resp_b"}
    found = find_response(acme.pk, "resp_a")
    assert found is not None and found.body == text
    assert find_response(acme.pk, "resp_b") is None
    assert not delete_response(acme.pk, "resp_b")
    assert find_response(acme.pk, "resp_\x00") is None and not delete_response(acme.pk, "resp_\x00")
    assert delete_response(other.pk, "resp_b") and find_response(other.pk, "resp_b") is None


def test_one_that_the_database_will_not_have_does_not_stop_the_others(acme: Tenant) -> None:
    gone = Tenant(pk=acme.pk + 1000)
    assert keep([response(acme, "a"), response(gone, "b"), response(acme, "c")]) == {"resp_a", "resp_c"}


def test_a_conversation_is_found_in_its_order_or_not_at_all(acme: Tenant) -> None:
    keep([response(acme, "c", "a", "b"), response(acme, "a"), response(acme, "b", "a")])
    chain = conversation_up_to(acme.pk, "resp_c")
    assert chain is not None and [one.pk for one in chain] == ["resp_a", "resp_b", "resp_c"]
    delete_response(acme.pk, "resp_a")
    assert conversation_up_to(acme.pk, "resp_c") is None
    assert conversation_up_to(acme.pk, "resp_none") is None


def test_what_is_continued_lives_as_long_as_what_follows(acme: Tenant) -> None:
    keep([response(acme, "a", days=1)])
    keep([response(acme, "b", "a", days=9)])
    assert delete_expired(NOW + timedelta(days=5)) == 0
    assert delete_expired(NOW + timedelta(days=10)) == 2


def test_expired_ones_are_deleted_a_batch_at_a_time_the_oldest_first(acme: Tenant) -> None:
    keep([response(acme, str(day), days=day) for day in (3, 1, 2, 9)])
    assert delete_expired(NOW + timedelta(days=5), batch_size=2) == 2
    assert set(StoredResponse.objects.values_list("pk", flat=True)) == {"resp_3", "resp_9"}
    assert [delete_expired(NOW + timedelta(days=5), batch_size=2) for _ in range(2)] == [1, 0]


def test_they_go_with_their_tenant(acme: Tenant) -> None:
    keep([response(acme, "a")])
    Tenant.objects.filter(pk=acme.pk).delete()
    assert not StoredResponse.objects.exists()
