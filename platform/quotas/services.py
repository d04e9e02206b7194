"""Changes of limits. Each is one transaction: the row, the tenant's policy epoch, the audit record."""

from typing import Protocol

from django.db import transaction

from audit.services import record
from quotas.models import Limit
from quotas.selectors import find_limit, scope_of
from tenants.models import Tenant
from tenants.policy_epochs import raise_policy_epoch


class KeyOfTenant(Protocol):
    """An API key; this room lies below theirs."""

    pk: int
    public_id: str


@transaction.atomic
def set_limit(
    tenant: Tenant,
    kind: str,
    value: int,
    *,
    key: KeyOfTenant | None = None,
    model: str = "",
    burst: int | None = None,
    actor: str = "system",
) -> Limit:
    """Make this limit, or change it; of the tenant, of `key` or of `model`. Raises ValidationError.

    In force on the very next request. The same again is no change.
    """
    Tenant.objects.select_for_update().get(pk=tenant.pk)
    key_pk = None if key is None else key.pk
    limit = find_limit(tenant.pk, kind, key_pk=key_pk, model=model)
    if limit is not None and (limit.value, limit.burst) == (value, burst):
        return limit
    before = None if limit is None else _values(limit)
    if limit is None:
        limit = Limit(tenant=tenant, kind=kind, key_id=key_pk, model=model, scope=scope_of(key_pk, model))
    limit.value, limit.burst = value, burst
    limit.full_clean()
    limit.save()
    raise_policy_epoch(tenant)
    record(actor, "limit.set", _subject(limit), _values(limit), before=before, tenant_id=tenant.pk)
    return limit


@transaction.atomic
def clear_limit(limit: Limit, *, actor: str = "system") -> None:
    """Unlimited from the very next request on."""
    subject, before, tenant = _subject(limit), _values(limit), limit.tenant
    num_deleted, _ = Limit.objects.filter(pk=limit.pk).delete()
    if num_deleted:
        raise_policy_epoch(tenant)
        record(actor, "limit.clear", subject, before=before, tenant_id=tenant.pk)


def _subject(limit: Limit) -> str:
    return f"tenant:{limit.tenant_id}" if limit.key is None else f"api_key:{limit.key.public_id}"


def _values(limit: Limit) -> dict[str, object]:
    named = {"scope": str(limit.scope), "kind": str(limit.kind), "model": limit.model}
    return {**named, "value": limit.value, "burst": limit.burst}
