"""Hourly and daily sums, kept up by the transaction that inserts the rows: they are never behind."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import date, datetime
from typing import NamedTuple

from django.db.models import F

from usage.models import DailyUsage, HourlyUsage, LedgerEntry

SUMS = ("prompt_tokens", "cached_tokens", "output_tokens", "overrun_tokens")


class Group(NamedTuple):
    tenant_id: int
    key_id: str
    model: str
    ending: str
    hour: datetime


def hour_of(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def add_to_rollups(rows: Iterable[LedgerEntry]) -> None:
    """Call it once for each row, in the transaction that inserts it. Times are UTC."""
    groups: dict[Group, dict[str, int]] = defaultdict(lambda: dict.fromkeys(("num_requests", *SUMS), 0))
    for row in rows:
        key = Group(row.tenant_id, row.key_id, row.model, row.ending, hour_of(row.admitted_at))
        sums = groups[key]
        sums["num_requests"] += 1
        for name in SUMS:
            sums[name] += getattr(row, name)
    for group, sums in sorted(groups.items()):
        _add(HourlyUsage, {**group._asdict()}, sums)
        day: dict[str, object] = {**group._asdict(), "day": _day_of(group.hour)}
        del day["hour"]
        _add(DailyUsage, day, sums)


def _day_of(hour: datetime) -> date:
    return hour.date()


def _add(kind: type[HourlyUsage | DailyUsage], group: dict[str, object], sums: dict[str, int]) -> None:
    changed = kind.objects.filter(**group).update(**{name: F(name) + amount for name, amount in sums.items()})
    if not changed:
        kind.objects.create(**group, **sums)
