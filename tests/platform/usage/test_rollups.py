"""Hourly and daily sums say what the rows say, whatever arrives twice, at once, or not at all."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections
from django.db.models import Count, Sum
from django.db.models.functions import TruncDate, TruncHour

from usage.billing import Subject, billed_tokens
from usage.models import DailyUsage, Ending, HourlyUsage, LedgerEntry
from usage.rollups import SUMS
from usage.services import delete_rows_before, insert_rows

MakeRow = Callable[..., LedgerEntry]
GROUP = ("tenant_id", "key_id", "model", "ending")


def sums_of_rows(trunc: Any) -> set[tuple[Any, ...]]:
    found = LedgerEntry.objects.annotate(slot=trunc("admitted_at")).values(*GROUP, "slot")
    summed = found.annotate(n=Count("id"), **{f"sum_{name}": Sum(name) for name in SUMS}).order_by()
    return set(summed.values_list("slot", *GROUP, "n", *(f"sum_{name}" for name in SUMS)))


def assert_sums_agree() -> None:
    columns = (*GROUP, "num_requests", *SUMS)
    assert set(HourlyUsage.objects.values_list("hour", *columns)) == sums_of_rows(TruncHour)
    assert set(DailyUsage.objects.values_list("day", *columns)) == sums_of_rows(TruncDate)


def test_they_follow_the_rows_by_hour_day_tenant_key_model_and_ending(
    any_database: str, row: MakeRow
) -> None:
    insert_rows(
        [
            row("a"),
            row("b", "2026-11-30T10:59:59.999999", cached_tokens=4),
            row("c", "2026-11-30T11:00:00", overrun_tokens=2),
            row("d", "2026-12-01T00:00:00"),
            row("e", tenant_id=8),
            row("f", key_id="other"),
            row("g", model="other"),
            row("h", ending=Ending.ABORTED.value),
        ]
    )
    insert_rows([row("i", output_tokens=100)])
    assert_sums_agree()
    hour = HourlyUsage.objects.get(tenant_id=7, key_id="k", model="m", ending="finished", hour__hour=10)
    assert (hour.num_requests, hour.prompt_tokens, hour.output_tokens, hour.cached_tokens) == (3, 21, 106, 4)


def test_what_arrives_twice_counts_once(any_database: str, row: MakeRow) -> None:
    insert_rows([row("a"), row("a", output_tokens=50), row("b")])
    insert_rows([row("a", output_tokens=99), row("c")])
    assert LedgerEntry.objects.count() == 3
    assert LedgerEntry.objects.get(request_id="a").output_tokens == 3
    assert_sums_agree()


def test_one_row_that_can_not_be_written_spoils_no_sum(any_database: str, row: MakeRow) -> None:
    bad = row("bad", prompt_tokens=2**40 if any_database == "postgresql" else -1)
    assert insert_rows([row("a"), bad, row("b")]) == [bad]
    assert LedgerEntry.objects.count() == 2
    assert_sums_agree()


def test_two_writers_at_once_count_each_request_once(any_database: str, row: MakeRow) -> None:
    def write(start: int) -> None:
        try:
            for number in range(start, start + 100, 10):
                insert_rows([row(f"r{each}") for each in range(number, number + 20)])
        finally:
            connections.close_all()

    with ThreadPoolExecutor(max_workers=3) as threads:
        list(threads.map(write, (0, 30, 60)))
    assert LedgerEntry.objects.count() == 170
    assert_sums_agree()


def test_old_rows_go_in_bounded_batches_and_the_sums_stay(any_database: str, row: MakeRow) -> None:
    insert_rows([row(f"old{number}", "2026-01-01T00:00:00") for number in range(25)] + [row("new")])
    before = row("x", "2026-06-01T00:00:00").admitted_at
    assert [delete_rows_before(before, batch_size=10) for _ in range(4)] == [10, 10, 5, 0]
    assert [entry.request_id for entry in LedgerEntry.objects.all()] == ["new"]
    assert sum(HourlyUsage.objects.values_list("num_requests", flat=True)) == 26
    assert sum(DailyUsage.objects.values_list("num_requests", flat=True)) == 26


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        ("2026-11-30T00:00", "2026-12-01T00:00", 40),
        ("2026-11-30T10:00", "2026-11-30T11:00", 20),
        ("2026-11-30T10:15", "2026-11-30T10:45", 10),  # within one hour: rows only
        ("2026-11-30T10:30", "2026-11-30T12:15", 20),  # rows, an hour's sum, rows
        ("2026-11-30T10:45", "2026-11-30T12:45", 30),
        ("2026-11-30T13:00", "2026-11-30T14:00", 0),
    ],
)
def test_billed_tokens_of_any_time(
    transactional_db: None, row: MakeRow, since: str, until: str, expected: int
) -> None:
    times = ("10:15", "10:45", "11:30", "12:30")
    insert_rows([row(time, f"2026-11-30T{time}:00") for time in times] + [row("x", tenant_id=8)])
    bounds = [row("x", time).admitted_at for time in (since, until)]
    assert billed_tokens(Subject(7), *bounds) == expected
    assert billed_tokens(Subject(7, key_id="k", model="m"), *bounds) == expected
    assert billed_tokens(Subject(7, key_id="other"), *bounds) == 0
    waiting = {"10:15": 10, "on its way": 5}
    assert billed_tokens(Subject(7), *bounds, waiting) == expected + 5
