"""Changes of keys: the secret is nowhere, the epoch rises, revoking is for good."""

from datetime import timedelta

import pytest
import redis
from django.core.exceptions import ValidationError
from django.utils import timezone

from api_keys.models import ApiKey
from api_keys.secrets_format import parse_authorization
from api_keys.selectors import find_key
from api_keys.services import create_key, revoke_key, update_key
from audit.models import AuditRecord
from tenants.models import Tenant
from tenants.services import create_tenant
from tenants.shards import epoch_key


def test_a_key_keeps_its_digest_and_nothing_of_its_secret(any_database: str) -> None:
    key, plaintext = create_key(create_tenant("Acme"), "k", actor="alice")
    found = find_key(key.public_id)

    assert found is not None and found.is_usable
    presented = parse_authorization(f"Bearer {plaintext}")
    assert presented is not None and bytes(found.digest) == presented.digest
    secret = plaintext.split("_")[2]
    held = [*ApiKey.objects.values_list(), *AuditRecord.objects.values_list()]
    assert secret not in str(held)


def test_revoking_raises_the_epoch_once_and_cannot_be_undone(any_database: str, store: redis.Redis) -> None:
    tenant = create_tenant("Acme")
    key, _ = create_key(tenant, "k")

    first = revoke_key(key).revoked_at
    assert first is not None and not key.is_usable
    assert revoke_key(key).revoked_at == first
    tenant.refresh_from_db()
    assert tenant.policy_epoch == 2
    assert store.get(epoch_key(tenant.pk)) == b"2"
    with pytest.raises(TypeError):
        update_key(key, revoked_at=None)


def test_changing_a_keys_limits_raises_its_tenants_epoch(key_and_secret: tuple[ApiKey, str]) -> None:
    key = update_key(key_and_secret[0], name="other", expires_at=timezone.now() + timedelta(days=1))
    assert (key.name, key.tenant.policy_epoch) == ("other", 2)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"expires_at": "soon"},
        {"allowed_models": {"a": 1}},
        {"scopes": []},
        {"scopes": ["root"]},
        {"scopes": ["batch", "batch"]},
        {"scopes": "batch"},
        {"scopes": [1]},
    ],
)
def test_wrong_fields_are_refused(tenant: Tenant, fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        create_key(tenant, **{"name": "k", **fields})  # type: ignore[arg-type]
    assert not ApiKey.objects.exists()


def test_a_change_is_on_record_with_before_and_after(key_and_secret: tuple[ApiKey, str]) -> None:
    key = key_and_secret[0]
    update_key(key, actor="user:alice", name="renamed", scopes=["inference", "batch"])
    found = AuditRecord.objects.filter(tenant_id=key.tenant_id, subject=f"api_key:{key.public_id}").first()
    assert found is not None and (found.actor, found.action) == ("user:alice", "api_key.update")
    assert found.before == {"name": "alice's key", "scopes": ["inference"]}
    assert found.after == {"name": "renamed", "scopes": ["inference", "batch"]}
