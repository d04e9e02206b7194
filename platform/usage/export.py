"""Usage as CSV or JSON, row by row: an export of any size needs the memory of one chunk."""

import csv
import json
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from enum import StrEnum
from typing import Any, TextIO

from django.db.models import Model, QuerySet

from usage.models import DailyUsage, HourlyUsage, LedgerEntry

CHUNK = 2000
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet would run a text that begins so; clients choose some of these texts."""

Row = dict[str, Any]


class What(StrEnum):
    REQUESTS = "requests"
    HOURS = "hours"
    DAYS = "days"


class Format(StrEnum):
    CSV = "csv"
    JSON = "json"


_TIMES = {What.REQUESTS: "admitted_at", What.HOURS: "hour", What.DAYS: "day"}
_MODELS: dict[What, type[Model]] = {
    What.REQUESTS: LedgerEntry,
    What.HOURS: HourlyUsage,
    What.DAYS: DailyUsage,
}


def rows_to_export(
    what: What, *, since: datetime, until: datetime, tenant_id: int | None = None
) -> Iterator[Row]:
    """In the order of time, of requests admitted in [since, until); of days those that begin in it, UTC."""
    time = _TIMES[what]
    bounds = (since.date(), until.date()) if what is What.DAYS else (since, until)
    found: QuerySet[Any] = _MODELS[what]._default_manager.filter(
        **{f"{time}__gte": bounds[0], f"{time}__lt": bounds[1]}
    )
    if tenant_id is not None:
        found = found.filter(tenant_id=tenant_id)
    names = columns_of(what)
    for values in found.order_by(time, "pk").values_list(*names).iterator(chunk_size=CHUNK):
        yield dict(zip(names, values, strict=True))


def columns_of(what: What) -> list[str]:
    return [field.name for field in _MODELS[what]._meta.concrete_fields if field.name != "id"]


def write_export(rows: Iterable[Row], names: list[str], kind: Format, out: TextIO) -> int:
    """Answers the number of rows written."""
    return _write_csv(rows, names, out) if kind is Format.CSV else _write_json(rows, out)


def _write_csv(rows: Iterable[Row], names: list[str], out: TextIO) -> int:
    writer, count = csv.writer(out), 0
    writer.writerow(names)
    for count, row in enumerate(rows, 1):  # noqa: B007
        writer.writerow([_cell(row[name]) for name in names])
    return count


def _cell(value: Any) -> Any:
    if isinstance(value, dict):
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return _plain(value)


def _write_json(rows: Iterable[Row], out: TextIO) -> int:
    """One array, one row a line."""
    count = 0
    for count, row in enumerate(rows, 1):
        out.write("[\n" if count == 1 else ",\n")
        json.dump({name: _plain(value) for name, value in row.items()}, out, ensure_ascii=False)
    out.write("\n]\n" if count else "[]\n")
    return count


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime | date) else value
