"""Changes of tenants: the row, the epoch in the database and in Redis, the audit record."""

import pytest
import redis
from django.core.exceptions import ValidationError

from audit.models import AuditRecord
from tenants.models import Tenant, TenantStatus
from tenants.policy_epochs import publish_epochs, reconcile_epochs
from tenants.selectors import find_tenant
from tenants.services import activate_tenant, create_tenant, suspend_tenant, update_tenant
from tenants.shards import epoch_key


def test_a_new_tenant_has_a_slug_and_an_audit_record(any_database: str) -> None:
    tenant = create_tenant("Acme Corp", actor="alice", weight=2.0)

    assert find_tenant("acme-corp") == find_tenant("Acme Corp") == tenant
    record = AuditRecord.objects.get()
    assert (record.actor, record.action, record.subject) == ("alice", "tenant.create", f"tenant:{tenant.pk}")
    assert record.after is not None and record.after["weight"] == 2.0


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("Acme", {}),  # taken
        ("", {}),
        ("Other", {"max_context_tokens": 0}),
        ("Other", {"time_zone": "Mars/Olympus"}),
        ("Other", {"features": ["magic"]}),
        ("Other", {"model_aliases": ["m"]}),
        ("Other", {"queue_timeout_seconds": 0}),
        ("Other", {"weight": 0}),
        ("Other", {"service_class": "gold"}),
        ("Other", {"allowed_models": "m"}),
        ("Other", {"allowed_models": [1]}),
    ],
)
def test_wrong_fields_are_refused_and_nothing_is_written(
    tenant: Tenant, name: str, fields: dict[str, object]
) -> None:
    with pytest.raises(ValidationError):
        create_tenant(name, **fields)
    assert Tenant.objects.count() == 1


def test_a_field_that_services_do_not_know_is_a_bug(tenant: Tenant) -> None:
    with pytest.raises(TypeError, match="policy_epoch"):
        update_tenant(tenant, policy_epoch=9)


def test_every_change_raises_the_epoch_in_the_database_and_in_redis(
    any_database: str, store: redis.Redis
) -> None:
    tenant = create_tenant("Acme")
    assert tenant.policy_epoch == 1

    changed = update_tenant(tenant, max_output_tokens=3)
    assert (changed.max_output_tokens, changed.policy_epoch) == (3, 2)
    assert store.get(epoch_key(tenant.pk)) == b"2"

    assert suspend_tenant(tenant).status == TenantStatus.SUSPENDED
    assert activate_tenant(tenant).status == TenantStatus.ACTIVE
    assert store.get(epoch_key(tenant.pk)) == b"4"


def test_redis_keeps_the_greatest_epoch(store: redis.Redis) -> None:
    assert publish_epochs([(5, 7)]) == 1
    assert publish_epochs([(5, 6), (5, 7)]) == 0
    assert store.get(epoch_key(5)) == b"7"


def test_reconciling_sets_what_redis_missed(tenant: Tenant, store: redis.Redis) -> None:
    Tenant.objects.filter(pk=tenant.pk).update(policy_epoch=40)  # as if the process died after its commit
    assert reconcile_epochs() == 1
    assert reconcile_epochs() == 0
    assert store.get(epoch_key(tenant.pk)) == b"40"


def test_a_change_is_made_even_while_redis_is_away(tenant: Tenant, settings: object) -> None:
    settings.REDIS_URL = "unix:///nowhere/redis.sock"  # type: ignore[attr-defined]
    assert update_tenant(tenant, weight=3.0).weight == 3.0
    tenant.refresh_from_db()
    assert (tenant.weight, tenant.policy_epoch) == (3.0, 2)
