"""What a caller may do: Django's permissions for operators, a fixed set of them for keys."""

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

# Of its own tenant. A tenant does not set its own limits, share or status.
PERMISSIONS_OF_KEYS = frozenset(
    {
        "tenants.view_tenant",
        "api_keys.view_apikey",
        "api_keys.add_apikey",
        "api_keys.change_apikey",
        "quotas.view_limit",
        "usage.view_ledgerentry",
        "audit.view_auditrecord",
        "bulk.view_batch",
        "bulk.change_batch",
    }
)


def is_caller(user: Any) -> bool:
    """A management key, or a person of the console."""
    return user is not None and user.is_authenticated and getattr(user, "is_staff", True)


class IsCaller(BasePermission):
    def has_permission(self, request: Request, view: Any) -> bool:
        return is_caller(request.user)


class MayDoThis(BasePermission):
    """The view names a permission for each of its actions in `required`; an action without one is refused."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not is_caller(request.user):
            return False
        if view.action is None:  # no such method here: answered as that
            return True
        permission = view.required.get(view.action)
        return permission is not None and request.user.has_perm(permission)
