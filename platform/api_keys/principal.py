"""Who a request acts for, and what the policy lets it do: a snapshot, good while its epoch is."""

from dataclasses import dataclass
from datetime import datetime

from api_keys.models import ApiKey
from api_keys.scopes import Scope
from inference_engine.contract.requests import ServiceClass
from tenants.models import TenantStatus


@dataclass(frozen=True, slots=True)
class Principal:
    tenant_id: str
    tenant_name: str
    key_id: str
    """The key's public id."""
    key_name: str
    service_class: ServiceClass
    weight: float
    is_suspended: bool
    policy_epoch: int
    expires_at: datetime | None = None
    max_concurrent: int | None = None
    """The tenant's limits; the key's own are the `key_...` ones. None: unlimited."""
    requests_per_minute: int | None = None
    key_max_concurrent: int | None = None
    key_requests_per_minute: int | None = None
    max_output_tokens: int | None = None
    allowed_models: frozenset[str] | None = None
    """None: every model."""
    scopes: frozenset[str] = frozenset({Scope.INFERENCE.value})
    generation: int = 0
    """Of the cache it was loaded into; another one now means that what was known may be out of date."""

    def may_use(self, model: str) -> bool:
        return self.allowed_models is None or model in self.allowed_models


def principal_of(key: ApiKey, generation: int) -> Principal:
    tenant = key.tenant
    return Principal(
        tenant_id=str(tenant.pk),
        tenant_name=tenant.name,
        key_id=key.public_id,
        key_name=key.name,
        service_class=ServiceClass(tenant.service_class),
        weight=tenant.weight,
        is_suspended=tenant.status == TenantStatus.SUSPENDED,
        policy_epoch=tenant.policy_epoch,
        expires_at=key.expires_at,
        max_concurrent=tenant.max_concurrent,
        requests_per_minute=tenant.requests_per_minute,
        key_max_concurrent=key.max_concurrent,
        key_requests_per_minute=key.requests_per_minute,
        max_output_tokens=tenant.max_output_tokens,
        allowed_models=_both(tenant.allowed_models, key.allowed_models),
        scopes=frozenset(key.scopes),
        generation=generation,
    )


def _both(one: list[str] | None, other: list[str] | None) -> frozenset[str] | None:
    if one is None or other is None:
        names = one if other is None else other
        return None if names is None else frozenset(names)
    return frozenset(one) & frozenset(other)
