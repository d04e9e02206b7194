"""Writes of the ledger."""

from collections.abc import Sequence

from django.db import DataError, IntegrityError

from usage.models import LedgerEntry


def insert_rows(rows: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """Each request id once, however often it arrives. Answers rows that can never be written.

    Raises OperationalError or InterfaceError while the database is away: nothing counts as written then.
    """
    try:
        LedgerEntry.objects.bulk_create(rows, ignore_conflicts=True)
    except (DataError, IntegrityError):
        if len(rows) == 1:
            return list(rows)
        return [refused for row in rows for refused in insert_rows([row])]
    return []
