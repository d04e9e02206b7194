"""Reads of the ledger."""

from datetime import datetime
from typing import TypedDict, cast

from django.db.models import Count, Sum

from usage.models import LedgerEntry


class Totals(TypedDict):
    num_requests: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    overrun_tokens: int


def find_entry(request_id: str) -> LedgerEntry | None:
    return LedgerEntry.objects.filter(request_id=request_id).first()


def tenant_totals(tenant_id: int, since: datetime, until: datetime) -> Totals:
    """Over requests that finished in [since, until)."""
    found = LedgerEntry.objects.filter(
        tenant_id=tenant_id, finished_at__gte=since, finished_at__lt=until
    ).aggregate(
        num_requests=Count("id"),
        prompt_tokens=Sum("prompt_tokens", default=0),
        cached_tokens=Sum("cached_tokens", default=0),
        output_tokens=Sum("output_tokens", default=0),
        overrun_tokens=Sum("overrun_tokens", default=0),
    )
    return cast(Totals, found)
