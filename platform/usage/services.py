"""Writes of the ledger."""

from collections.abc import Sequence
from datetime import datetime

from django.db import DataError, IntegrityError, connection, transaction

from usage.models import LedgerEntry
from usage.rollups import add_to_rollups

LEDGER_LOCK = 0x0C7A_1ED6
"""PostgreSQL's advisory lock of whoever inserts rows: which are new must stay true until the commit."""


def insert_rows(rows: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """Each request id once, however often it arrives, in the ledger and in the roll-ups.

    Answers rows that can never be written. Raises OperationalError or InterfaceError while the database is
    away: nothing counts as written then.
    """
    try:
        with transaction.atomic():
            _insert_new(rows)
    except (DataError, IntegrityError):
        if len(rows) == 1:
            return list(rows)
        return [refused for row in rows for refused in insert_rows([row])]
    return []


def _insert_new(rows: Sequence[LedgerEntry]) -> None:
    """One writer at a time: SQLite's transactions begin with its write lock, PostgreSQL is asked for one."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LEDGER_LOCK])
    first: dict[str, LedgerEntry] = {}
    for row in rows:
        first.setdefault(row.request_id, row)
    known = LedgerEntry.objects.filter(request_id__in=list(first)).values_list("request_id", flat=True)
    new = [row for request_id, row in first.items() if request_id not in set(known)]
    LedgerEntry.objects.bulk_create(new)
    add_to_rollups(new)


def delete_rows_before(before: datetime, *, batch_size: int = 1000) -> int:
    """One bounded batch of rows admitted before that; the roll-ups stay. Answers how many were deleted."""
    oldest = LedgerEntry.objects.filter(admitted_at__lt=before).order_by("admitted_at").values("pk")
    deleted, _ = LedgerEntry.objects.filter(
        pk__in=list(oldest[:batch_size].values_list("pk", flat=True))
    ).delete()
    return deleted
