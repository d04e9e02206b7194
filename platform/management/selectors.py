"""Reads of usage for the management API: every filter is optional but the time range."""

from datetime import UTC, date, datetime, timedelta
from typing import Any, TypedDict, TypeVar, cast

from django.db.models import Model, QuerySet, Sum

from usage.models import DailyUsage, HourlyUsage, LedgerEntry

AnyRow = TypeVar("AnyRow", bound=Model)

SUMS = ("num_requests", "prompt_tokens", "cached_tokens", "output_tokens", "overrun_tokens")
_COLUMNS = {"tenant": "tenant_id", "key": "key_id", "model": "model", "ending": "ending"}


class Chosen(TypedDict, total=False):
    """What a query asks for. Times are of admission."""

    tenant: int
    key: str
    model: str
    ending: str
    since: datetime
    until: datetime


def ledger_rows(chosen: Chosen) -> QuerySet[LedgerEntry]:
    """Requests admitted in [since, until)."""
    rows = _filtered(LedgerEntry.objects.all(), chosen)
    return rows.filter(admitted_at__gte=chosen["since"], admitted_at__lt=chosen["until"])


def hourly_rows(chosen: Chosen) -> QuerySet[HourlyUsage]:
    """Hours that begin in [since, until)."""
    rows = _filtered(HourlyUsage.objects.all(), chosen)
    return rows.filter(hour__gte=chosen["since"], hour__lt=chosen["until"])


def daily_rows(chosen: Chosen) -> QuerySet[DailyUsage]:
    """Days that begin, in UTC, in [since, until)."""
    rows = _filtered(DailyUsage.objects.all(), chosen)
    return rows.filter(day__gte=_next_day(chosen["since"]), day__lt=_next_day(chosen["until"]))


def totals(chosen: Chosen) -> dict[str, int]:
    """Over the hours that begin in [since, until)."""
    sums: Any = {name: Sum(name, default=0) for name in SUMS}
    return cast(dict[str, int], hourly_rows(chosen).aggregate(**sums))


def _filtered(rows: QuerySet[AnyRow], chosen: Chosen) -> QuerySet[AnyRow]:
    given: dict[str, Any] = dict(chosen)
    return rows.filter(**{column: given[name] for name, column in _COLUMNS.items() if name in given})


def _next_day(at: datetime) -> date:
    """The first day that begins then or later."""
    at = at.astimezone(UTC)
    if at.time() == datetime.min.time() or at.date() == date.max:
        return at.date()
    return at.date() + timedelta(days=1)
