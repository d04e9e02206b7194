"""Admin pages with fewer powers than Django gives them."""

from typing import Any

from django.http import HttpRequest
from unfold.admin import ModelAdmin


class UndeletableAdmin(ModelAdmin):
    """Tenants are suspended and keys revoked; rows that the ledger and the audit speak of stay."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnlyAdmin(UndeletableAdmin):
    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
