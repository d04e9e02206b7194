"""Who calls the management API, and what of it exists for them."""

from dataclasses import dataclass
from typing import Any

from api_keys.models import ApiKey
from audit.origin import user_actor
from management.permissions import PERMISSIONS_OF_KEYS


@dataclass(frozen=True, slots=True)
class KeyCaller:
    """request.user where a management key was presented."""

    key: ApiKey
    is_authenticated = True

    def has_perm(self, permission: str) -> bool:
        return permission in PERMISSIONS_OF_KEYS


@dataclass(frozen=True, slots=True)
class Caller:
    actor: str
    tenant_id: int | None
    """The only tenant that exists for this caller; None: every one does."""

    def sees(self, tenant_id: int) -> bool:
        return self.tenant_id is None or self.tenant_id == tenant_id


def caller_of(user: Any) -> Caller:
    if isinstance(user, KeyCaller):
        return Caller(f"api_key:{user.key.public_id}", user.key.tenant_id)
    return Caller(user_actor(user.get_username()), None)
