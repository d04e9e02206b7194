"""What is only read: ledger, its sums, audit trail. Search is exact: ignoring case would read every row."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from audit.models import AuditRecord
from console.read_only import ReadOnlyAdmin
from usage.models import DailyUsage, HourlyUsage, LedgerEntry

SUMS = ("num_requests", "prompt_tokens", "cached_tokens", "output_tokens", "overrun_tokens")
MAX_DIGITS = 12
"""Of a tenant's number; keys' ids are longer."""


@admin.register(LedgerEntry)
class LedgerEntryAdmin(ReadOnlyAdmin):
    list_display = (
        "request_id",
        "tenant_name",
        "key_name",
        "model",
        "prompt_tokens",
        "output_tokens",
        "ending",
        "code",
        "finished_at",
    )
    list_filter = ("ending",)
    ordering = ("-admitted_at",)  # as its indexes are
    search_fields = ("request_id__exact", "key_id__exact")
    search_help_text = "A request's or a key's whole id; a tenant's requests: from its page."


class RollupAdmin(ReadOnlyAdmin):
    list_filter = ("ending",)
    search_fields = ("tenant_id", "key_id")
    search_help_text = "A tenant's number, or a key's whole id."

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """One of the two, not either: each has its index, a condition over both has none."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if term.isdecimal() and len(term) <= MAX_DIGITS:
            return queryset.filter(tenant_id=int(term)), False
        return queryset.filter(key_id=term), False


@admin.register(HourlyUsage)
class HourlyUsageAdmin(RollupAdmin):
    list_display = ("hour", "tenant_id", "key_id", "model", "ending", *SUMS)


@admin.register(DailyUsage)
class DailyUsageAdmin(RollupAdmin):
    list_display = ("day", "tenant_id", "key_id", "model", "ending", *SUMS)


class KindFilter(admin.SimpleListFilter):
    """A fixed list: asking the table which actions it holds would read all of it."""

    title = "what"
    parameter_name = "what"
    KINDS = ("tenant", "api_key", "limit", "operator", "session")

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(kind, kind.replace("_", " ")) for kind in self.KINDS]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset if self.value() is None else queryset.filter(action__startswith=f"{self.value()}.")


@admin.register(AuditRecord)
class AuditRecordAdmin(ReadOnlyAdmin):
    list_display = ("at", "actor", "action", "subject", "tenant_id", "request_id", "address")
    list_filter = (KindFilter, "at")
    search_fields = ("subject__exact", "actor__exact", "request_id__exact")
    search_help_text = "A whole subject (tenant:5), actor (user:alice) or request id."
