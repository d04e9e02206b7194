"""Calendar days and months in a tenant's time zone. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from quotas.limits import LimitKind


@dataclass(frozen=True, slots=True)
class Period:
    """Unix seconds, [start, end)."""

    start: int
    end: int


def period_of(kind: LimitKind, now: float, time_zone: str) -> Period:
    """The day or month that `now`, in Unix seconds, lies in. A day may have 23 or 25 hours."""
    found = _latest.get((kind, time_zone))
    if found is None or not found.start <= now < found.end:
        found = _latest[kind, time_zone] = _period_at(kind, now, time_zone)
    return found


_latest: dict[tuple[LimitKind, str], Period] = {}
"""Of each kind and zone the one asked for last: nearly always the next one too."""


def _period_at(kind: LimitKind, now: float, time_zone: str) -> Period:
    local = datetime.fromtimestamp(now, ZoneInfo(time_zone))
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    if kind is LimitKind.TOKENS_PER_DAY:
        return _between(midnight, midnight + timedelta(days=1))
    first = midnight.replace(day=1)
    return _between(first, (first + timedelta(days=32)).replace(day=1))


def _between(start: datetime, end: datetime) -> Period:
    """Each from its own offset: adding days to a local time keeps the clock, not the hours between."""
    return Period(int(start.timestamp()), int(end.timestamp()))
