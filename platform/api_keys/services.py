"""Changes of API keys. Each is one transaction: the row, the tenant's policy epoch, the audit record."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from api_keys.models import ApiKey
from api_keys.secrets_format import draw_key
from audit.services import record
from tenants.models import Tenant
from tenants.policy_epochs import raise_policy_epoch

CHANGEABLE = frozenset({"name", "expires_at", "max_concurrent", "requests_per_minute", "allowed_models"})


@transaction.atomic
def create_key(
    tenant: Tenant,
    name: str,
    *,
    expires_at: datetime | None = None,
    max_concurrent: int | None = None,
    requests_per_minute: int | None = None,
    allowed_models: list[str] | None = None,
    actor: str = "system",
) -> tuple[ApiKey, str]:
    """The key and its plaintext, which is nowhere kept: show it once. Raises ValidationError."""
    drawn = draw_key()
    key = ApiKey(
        public_id=drawn.public_id,
        digest=drawn.digest,
        name=name,
        tenant=tenant,
        expires_at=expires_at,
        max_concurrent=max_concurrent,
        requests_per_minute=requests_per_minute,
        allowed_models=allowed_models,
    )
    key.full_clean()
    key.save()
    record(actor, "api_key.create", _subject(key), {"tenant": tenant.pk, "name": name})
    return key, drawn.plaintext


@transaction.atomic
def update_key(key: ApiKey, *, actor: str = "system", **changes: Any) -> ApiKey:
    unknown = changes.keys() - CHANGEABLE
    if unknown:
        raise TypeError(f"not changeable: {', '.join(sorted(unknown))}")
    current = ApiKey.objects.select_for_update().get(pk=key.pk)
    for name, value in changes.items():
        setattr(current, name, value)
    current.full_clean()
    current.save(update_fields=list(changes))
    raise_policy_epoch(current.tenant)
    record(
        actor, "api_key.update", _subject(current), {name: _plain(value) for name, value in changes.items()}
    )
    return current


@transaction.atomic
def revoke_key(key: ApiKey, *, actor: str = "system") -> ApiKey:
    """Refused from the very next request on; open streams end within a second. Again is no change."""
    revoked = ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now())
    key.refresh_from_db(fields=["revoked_at"])
    if revoked:
        raise_policy_epoch(key.tenant)
        record(actor, "api_key.revoke", _subject(key))
    return key


def _subject(key: ApiKey) -> str:
    return f"api_key:{key.public_id}"


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value
