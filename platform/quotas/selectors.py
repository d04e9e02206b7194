"""Reads of limits."""

from django.db.models import Q

from quotas.limits import OF_TENANTS, LimitKind, LimitRule, LimitScope
from quotas.models import Limit


def rules_for_key(tenant_id: int, key_pk: int) -> tuple[LimitRule, ...]:
    """What a request with this key is measured against, whatever its model."""
    mine = Q(key=None) | Q(key_id=key_pk)
    found = Limit.objects.filter(mine, tenant_id=tenant_id).exclude(kind__in=OF_TENANTS)
    return tuple(limit.rule for limit in found.order_by("id"))


def queue_limits() -> dict[int, int]:
    """Requests that may wait in an engine, by tenant id."""
    return dict(Limit.objects.filter(kind=LimitKind.QUEUED).values_list("tenant_id", "value"))


def limit_of_tenant(tenant_id: int, kind: LimitKind) -> int | None:
    """None: unlimited."""
    found = Limit.objects.filter(tenant_id=tenant_id, kind=kind, scope=LimitScope.TENANT)
    return found.values_list("value", flat=True).first()


def find_limit(tenant_id: int, kind: str, *, key_pk: int | None = None, model: str = "") -> Limit | None:
    found = Limit.objects.filter(tenant_id=tenant_id, kind=kind, scope=scope_of(key_pk, model))
    return found.filter(key_id=key_pk, model=model).first()


def scope_of(key_pk: int | None, model: str) -> LimitScope:
    if key_pk is not None:
        return LimitScope.KEY
    return LimitScope.MODEL if model else LimitScope.TENANT
