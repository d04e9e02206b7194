"""Who a request acts for, and what the policy lets it do: a snapshot, good while its epoch is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from api_keys.models import ApiKey
from api_keys.networks import Network, parse_networks
from api_keys.scopes import Scope
from inference_engine.contract.requests import ServiceClass
from quotas.limits import LimitRule
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
    limits: tuple[LimitRule, ...] = ()
    """Of the tenant, of the key and of single models."""
    time_zone: str = "UTC"
    max_output_tokens: int | None = None
    default_output_tokens: int | None = None
    max_context_tokens: int | None = None
    allowed_models: frozenset[str] | None = None
    """None: every model."""
    model_aliases: Mapping[str, str] = field(default_factory=dict, hash=False)
    features: frozenset[str] | None = None
    """None: every feature."""
    queue_timeout_s: float | None = None
    allowed_networks: tuple[Network, ...] | None = None
    """None: from anywhere."""
    scopes: frozenset[str] = frozenset({Scope.INFERENCE.value})
    purpose: Scope = Scope.INFERENCE
    """What it was authenticated for."""
    proof: bytes | None = field(default=None, repr=False)
    """The digest of the secret that was presented; None: nobody presented one, as for a batch's lines."""
    generation: int = 0
    """Of the cache it was loaded into; another one now means that what was known may be out of date."""

    def may_use(self, model: str) -> bool:
        return self.allowed_models is None or model in self.allowed_models

    def model_named(self, name: str) -> str:
        """What a model's name in a request stands for."""
        return self.model_aliases.get(name, name)


def principal_of(key: ApiKey, generation: int, limits: tuple[LimitRule, ...] = ()) -> Principal:
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
        limits=limits,
        time_zone=tenant.time_zone,
        max_output_tokens=tenant.max_output_tokens,
        default_output_tokens=tenant.default_output_tokens,
        max_context_tokens=tenant.max_context_tokens,
        model_aliases=tenant.model_aliases,
        features=None if tenant.features is None else frozenset(tenant.features),
        queue_timeout_s=tenant.queue_timeout_seconds,
        allowed_models=_both(tenant.allowed_models, key.allowed_models),
        allowed_networks=parse_networks(key.allowed_networks),
        scopes=frozenset(key.scopes),
        generation=generation,
    )


def _both(one: list[str] | None, other: list[str] | None) -> frozenset[str] | None:
    if one is None or other is None:
        names = one if other is None else other
        return None if names is None else frozenset(names)
    return frozenset(one) & frozenset(other)
