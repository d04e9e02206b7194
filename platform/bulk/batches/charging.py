"""Every answer that was kept is in the ledger, once: what a worker's death lost of it is sent again.

An answer is kept before its request is settled. A worker that dies in between leaves a reservation that the
sweeper settles with nothing billed; then the answer's own row is entered under a name of its own.
"""

import json
from collections.abc import Iterator
from datetime import timedelta

import structlog
from django.db.models import Q
from django.utils import timezone

from bulk.batches.validation import drop_lines
from bulk.models import OPEN, Batch, Line
from quotas.reservation_keys import ReservationKeys
from usage.models import LedgerEntry

log = structlog.get_logger(__name__)

SETTLED_AFTER = timedelta(seconds=5)
"""By then most rows are written, and few have to be looked for twice; settling is idempotent at any time."""
LINES_AT_ONCE = 400
AGAIN = "_kept"

Row = dict[str, str]


def uncharged_batches() -> list[int]:
    """Ended for long enough, and not looked through yet."""
    before = timezone.now() - SETTLED_AFTER
    ended = Q(completed_at__lt=before) | Q(cancelled_at__lt=before) | Q(expired_at__lt=before)
    ended |= Q(failed_at__lt=before)
    found = Batch.objects.filter(ended, charged_at=None).exclude(status__in=OPEN)
    return list(found.order_by("pk").values_list("pk", flat=True)[:10])


def missing_charges(batch_pk: int) -> Iterator[Row]:
    """Rows that the ledger lacks."""
    lines = Line.objects.filter(batch_id=batch_pk).exclude(charge="").order_by("number")
    last = 0
    while page := list(lines.filter(number__gt=last).values_list("number", "charge")[:LINES_AT_ONCE]):
        yield from _missing([json.loads(charge) for _, charge in page])
        last = page[-1][0]


def _missing(rows: list[Row]) -> Iterator[Row]:
    names = [name for row in rows for name in (row["request_id"], row["request_id"] + AGAIN)]
    entries = LedgerEntry.objects.filter(request_id__in=names)
    billed = {
        name: prompt + output
        for name, prompt, output in entries.values_list("request_id", "prompt_tokens", "output_tokens")
    }
    for row in rows:
        name = row["request_id"]
        if name not in billed:
            yield row
        elif billed[name] < _tokens(row) and name + AGAIN not in billed:
            yield row | {"request_id": name + AGAIN}


def _tokens(row: Row) -> int:
    return int(row["prompt_tokens"]) + int(row["output_tokens"])


def keys_of(row: Row) -> ReservationKeys:
    return ReservationKeys(row["tenant_id"], row["key_id"], row["request_id"], row["model"])


def close_charges(batch_pk: int) -> None:
    """Nothing is missing: its lines are of no further use."""
    batch = Batch.objects.get(pk=batch_pk)
    drop_lines(batch)
    Batch.objects.filter(pk=batch_pk).update(charged_at=timezone.now())
