"""Calendar days and months where the tenant lives."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from quotas.limits import LimitKind
from quotas.periods import period_of

HOUR = 3600


def at(text: str, zone: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("zone", "now", "start", "end", "hours"),
    [
        ("UTC", "2026-11-30 23:59:59", "2026-11-30", "2026-12-01", 24),
        ("UTC", "2026-12-01 00:00:00", "2026-12-01", "2026-12-02", 24),
        ("Asia/Kathmandu", "2026-11-30 00:10", "2026-11-30", "2026-12-01", 24),
        ("Europe/Berlin", "2026-03-29 12:00", "2026-03-29", "2026-03-30", 23),
        ("Europe/Berlin", "2026-10-25 02:30", "2026-10-25", "2026-10-26", 25),
        ("America/Los_Angeles", "2026-11-01 23:00", "2026-11-01", "2026-11-02", 25),
    ],
)
def test_days(zone: str, now: str, start: str, end: str, hours: int) -> None:
    period = period_of(LimitKind.TOKENS_PER_DAY, at(now, zone), zone)
    assert (period.start, period.end) == (at(start, zone), at(end, zone))
    assert period.end - period.start == hours * HOUR


@pytest.mark.parametrize(
    ("zone", "now", "start", "end"),
    [
        ("UTC", "2026-12-31 23:59:59", "2026-12-01", "2027-01-01"),
        ("Asia/Tokyo", "2028-02-29 00:00", "2028-02-01", "2028-03-01"),
        ("Europe/Berlin", "2026-03-31 12:00", "2026-03-01", "2026-04-01"),
    ],
)
def test_months(zone: str, now: str, start: str, end: str) -> None:
    period = period_of(LimitKind.TOKENS_PER_MONTH, at(now, zone), zone)
    assert (period.start, period.end) == (at(start, zone), at(end, zone))


def test_the_first_second_of_a_period_belongs_to_it_and_the_one_before_does_not() -> None:
    now = at("2026-12-01", "Europe/Berlin")
    period = period_of(LimitKind.TOKENS_PER_MONTH, now, "Europe/Berlin")
    assert period.start == now
    assert period_of(LimitKind.TOKENS_PER_MONTH, now - 1, "Europe/Berlin").end == now
