"""What was spent: billed tokens (prompt + output) of requests admitted in a time, from roll-ups and rows."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import F, QuerySet, Sum

from usage.models import HourlyUsage, LedgerEntry
from usage.rollups import hour_of


@dataclass(frozen=True, slots=True)
class Subject:
    """Whose: a tenant's, or only those of one of its keys or of one model."""

    tenant_id: int
    key_id: str | None = None
    model: str | None = None

    def filters(self) -> dict[str, Any]:
        named = {"tenant_id": self.tenant_id, "key_id": self.key_id, "model": self.model}
        return {name: value for name, value in named.items() if value is not None}


def billed_tokens(
    subject: Subject,
    since: datetime,
    until: datetime,
    waiting: Mapping[str, int] | None = None,
    besides: Collection[str] = (),
) -> int:
    """Of requests admitted in [since, until), and of those in `waiting` (request id -> tokens) that are not
    in the ledger yet; not of those that `besides` names. Whole hours come from roll-ups, else from rows."""
    with transaction.atomic():
        _see_one_moment()
        in_ledger = _in_ledger(subject, since, until)
        if besides:
            rows = LedgerEntry.objects.filter(request_id__in=list(besides), **subject.filters())
            in_ledger -= _tokens(rows.filter(admitted_at__gte=since, admitted_at__lt=until))
        known = LedgerEntry.objects.filter(request_id__in=list(waiting or ())).values_list(
            "request_id", flat=True
        )
        missing = (waiting or {}).keys() - set(known)
    return in_ledger + sum((waiting or {})[request_id] for request_id in missing)


def _see_one_moment() -> None:
    """A row that is written between two of our queries must not count twice or not at all."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")


def _in_ledger(subject: Subject, since: datetime, until: datetime) -> int:
    first_hour = hour_of(since) if since == hour_of(since) else hour_of(since) + timedelta(hours=1)
    last_hour = max(first_hour, hour_of(until))
    rows = LedgerEntry.objects.filter(**subject.filters())
    hours = HourlyUsage.objects.filter(**subject.filters(), hour__gte=first_hour, hour__lt=last_hour)
    return (
        _tokens(hours)
        + _tokens(rows.filter(admitted_at__gte=since, admitted_at__lt=min(first_hour, until)))
        + _tokens(rows.filter(admitted_at__gte=last_hour, admitted_at__lt=until))
    )


def _tokens(found: "QuerySet[Any]") -> int:
    return int(found.aggregate(tokens=Sum(F("prompt_tokens") + F("output_tokens"), default=0))["tokens"])
