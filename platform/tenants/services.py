"""Changes of tenants. Each is one transaction: the row, the policy epoch, the audit record."""

from typing import Any

from django.db import transaction
from django.utils.text import slugify

from audit.services import record
from tenants.models import Tenant, TenantStatus
from tenants.policy_epochs import raise_policy_epoch

CHANGEABLE = frozenset(
    {
        "name",
        "slug",
        "status",
        "service_class",
        "weight",
        "max_output_tokens",
        "default_output_tokens",
        "max_context_tokens",
        "allowed_models",
        "model_aliases",
        "features",
        "queue_timeout_seconds",
        "time_zone",
    }
)


@transaction.atomic
def create_tenant(name: str, *, actor: str = "system", **fields: Any) -> Tenant:
    """Raises ValidationError where a field is wrong or the name is taken."""
    _refuse_unknown(fields)
    tenant = Tenant(name=name, **{"slug": slugify(name)[:64], **fields})
    tenant.full_clean()
    tenant.save()
    record(actor, "tenant.create", _subject(tenant), {"name": name, **fields}, tenant_id=tenant.pk)
    return tenant


@transaction.atomic
def update_tenant(tenant: Tenant, *, actor: str = "system", **changes: Any) -> Tenant:
    """Applies `changes`; in force on the tenant's very next request."""
    _refuse_unknown(changes)
    current = Tenant.objects.select_for_update().get(pk=tenant.pk)
    before = {name: getattr(current, name) for name in changes}
    for name, value in changes.items():
        setattr(current, name, value)
    current.full_clean()
    current.save(update_fields=list(changes))
    raise_policy_epoch(current)
    record(actor, "tenant.update", _subject(current), changes, before=before, tenant_id=current.pk)
    return current


def suspend_tenant(tenant: Tenant, *, actor: str = "system") -> Tenant:
    return update_tenant(tenant, actor=actor, status=TenantStatus.SUSPENDED)


def activate_tenant(tenant: Tenant, *, actor: str = "system") -> Tenant:
    return update_tenant(tenant, actor=actor, status=TenantStatus.ACTIVE)


def _refuse_unknown(fields: dict[str, Any]) -> None:
    unknown = fields.keys() - CHANGEABLE
    if unknown:
        raise TypeError(f"not a tenant's field: {', '.join(sorted(unknown))}")


def _subject(tenant: Tenant) -> str:
    return f"tenant:{tenant.pk}"
