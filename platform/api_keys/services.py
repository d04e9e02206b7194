"""Changes of API keys. Each is one transaction: the row, the tenant's policy epoch, the audit record."""

from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from api_keys.models import ApiKey
from api_keys.scopes import default_scopes
from api_keys.secrets_format import draw_key, draw_secret
from audit.services import record
from tenants.models import Tenant
from tenants.policy_epochs import raise_policy_epoch

CHANGEABLE = frozenset({"name", "scopes", "expires_at", "allowed_models", "allowed_networks"})


@transaction.atomic
def create_key(
    tenant: Tenant,
    name: str,
    *,
    expires_at: datetime | None = None,
    allowed_models: list[str] | None = None,
    allowed_networks: list[str] | None = None,
    scopes: list[str] | None = None,
    actor: str = "system",
) -> tuple[ApiKey, str]:
    """The key and its plaintext, which is nowhere kept: show it once. Raises ValidationError.

    `scopes` is for inference unless given.
    """
    drawn = draw_key()
    key = ApiKey(
        public_id=drawn.public_id,
        digest=drawn.digest,
        name=name,
        tenant=tenant,
        expires_at=expires_at,
        allowed_models=allowed_models,
        allowed_networks=allowed_networks,
        scopes=default_scopes() if scopes is None else scopes,
    )
    key.full_clean()
    key.save()
    fields = {name: getattr(key, name) for name in sorted(CHANGEABLE)}
    record(actor, "api_key.create", _subject(key), {"tenant": tenant.pk, **fields}, tenant_id=tenant.pk)
    return key, drawn.plaintext


@transaction.atomic
def update_key(key: ApiKey, *, actor: str = "system", **changes: Any) -> ApiKey:
    unknown = changes.keys() - CHANGEABLE
    if unknown:
        raise TypeError(f"not changeable: {', '.join(sorted(unknown))}")
    current = ApiKey.objects.select_for_update().get(pk=key.pk)
    before = {name: getattr(current, name) for name in changes}
    for name, value in changes.items():
        setattr(current, name, value)
    current.full_clean()
    current.save(update_fields=list(changes))
    raise_policy_epoch(current.tenant)
    record(actor, "api_key.update", _subject(current), changes, before=before, tenant_id=current.tenant_id)
    return current


@transaction.atomic
def rotate_key(key: ApiKey, *, grace: timedelta = timedelta(0), actor: str = "system") -> tuple[ApiKey, str]:
    """The key, and its new plaintext: show it once. The secret until now is good for `grace` more.

    Id, limits and what was spent of them stay: no budget begins again. A secret still in grace from an
    earlier rotation ends now. Raises ValidationError for a key that is revoked or has expired.
    """
    current = ApiKey.objects.select_for_update().select_related("tenant").get(pk=key.pk)
    if not current.is_usable:
        raise ValidationError("Only a key that is still usable can be rotated.")
    drawn = draw_secret(current.public_id)
    current.previous_digest = current.digest if grace else None
    current.previous_until = timezone.now() + grace if grace else None
    current.digest = drawn.digest
    current.save(update_fields=["digest", "previous_digest", "previous_until"])
    raise_policy_epoch(current.tenant)
    after = {"previous_until": current.previous_until}
    record(actor, "api_key.rotate", _subject(current), after, tenant_id=current.tenant_id)
    return current, drawn.plaintext


@transaction.atomic
def revoke_key(key: ApiKey, *, actor: str = "system") -> ApiKey:
    """Refused from the very next request on; open streams end within a second. Again is no change."""
    revoked = ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now())
    key.refresh_from_db(fields=["revoked_at"])
    if revoked:
        raise_policy_epoch(key.tenant)
        after = {"revoked_at": key.revoked_at}
        record(
            actor,
            "api_key.revoke",
            _subject(key),
            after,
            before={"revoked_at": None},
            tenant_id=key.tenant_id,
        )
    return key


def _subject(key: ApiKey) -> str:
    return f"api_key:{key.public_id}"
