"""Admin pages with fewer powers than Django gives them."""

from functools import cached_property
from typing import Any

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

from console.chosen_rows import ChosenRowsAdmin

MAX_COUNTED = 10_000


class BoundedPaginator(Paginator):
    """Counts no further than what anybody pages through: a COUNT over a million rows takes its time."""

    @cached_property
    def count(self) -> int:
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        return rows.order_by()[:MAX_COUNTED].count()


class UndeletableAdmin(ChosenRowsAdmin):
    """Tenants are suspended and keys revoked; rows that the ledger and the audit speak of stay."""

    list_per_page = 25

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnlyAdmin(UndeletableAdmin):
    paginator = BoundedPaginator
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
