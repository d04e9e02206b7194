"""A worker's claim on the lines of one chunk: taken in one statement, renewed while it lasts, given back."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from bulk.execution.holding import draw_fence, lease_end
from bulk.models import UNFINISHED, Batch, BatchStatus, Chunk, File, Line, LineState


class ClaimedLine(NamedTuple):
    pk: int
    number: int
    custom_id: str
    offset: int
    length: int
    num_faults: int


@dataclass(frozen=True, slots=True)
class Claim:
    """Nobody else has these lines while the lease lasts; whoever has them later has a higher fence."""

    chunk_pk: int
    batch_pk: int
    batch_id: str
    endpoint: str
    key_id: str
    address: str
    expires_at: datetime
    input_file: File
    fence: int
    lines: list[ClaimedLine] = field(default_factory=list)


@transaction.atomic
def claim_chunk(chunk_pk: int) -> Claim | None:
    """None: there is nothing to do in it, or others are at it."""
    found = Chunk.objects.filter(pk=chunk_pk, batch__status=BatchStatus.IN_PROGRESS, is_done=False).first()
    if found is None:
        return None
    now, lease = timezone.now(), lease_end()
    fence = draw_fence(found.batch_id)
    free = Q(state=LineState.WAITING) | Q(state=LineState.CLAIMED, lease_until__lt=now)
    lines = Line.objects.filter(free, chunk_id=chunk_pk)
    if not lines.update(state=LineState.CLAIMED, fence=fence, lease_until=lease):
        return None
    Chunk.objects.filter(pk=chunk_pk).update(taken_until=lease, not_before=None)
    batch = Batch.objects.select_related("api_key", "input_file").get(pk=found.batch_id)
    mine = Line.objects.filter(chunk_id=chunk_pk, fence=fence).order_by("number")
    return Claim(
        chunk_pk,
        batch.pk,
        batch.public_id,
        batch.endpoint,
        batch.api_key.public_id,
        batch.address,
        batch.expires_at,
        batch.input_file,
        fence,
        [ClaimedLine(*values) for values in mine.values_list(*ClaimedLine._fields)],
    )


def renew_claim(claim: Claim) -> bool:
    """False: the batch was cancelled, has expired or is gone: stop."""
    running = Batch.objects.filter(pk=claim.batch_pk, status=BatchStatus.IN_PROGRESS)
    if not running.filter(expires_at__gt=timezone.now()).exists():
        return False
    lease = lease_end()
    with transaction.atomic():
        _mine(claim).update(lease_until=lease)
        Chunk.objects.filter(pk=claim.chunk_pk, is_done=False).update(taken_until=lease)
    return True


@transaction.atomic
def end_claim(claim: Claim, not_before: datetime | None) -> None:
    """Give back what wasn't finished."""
    _mine(claim).update(state=LineState.WAITING, lease_until=None)
    is_claimed = Line.objects.filter(chunk_id=claim.chunk_pk, state=LineState.CLAIMED).exists()
    if not close_chunk(claim.chunk_pk) and not is_claimed:
        Chunk.objects.filter(pk=claim.chunk_pk).update(taken_until=None, not_before=not_before)


def close_chunk(chunk_pk: int) -> bool:
    """Whether it is done, also where a worker answered all of it and died before it could say so."""
    if Line.objects.filter(chunk_id=chunk_pk, state__in=UNFINISHED).exists():
        return False
    Chunk.objects.filter(pk=chunk_pk).update(is_done=True, taken_until=None)
    return True


def count_fault(claim: Claim, line: ClaimedLine) -> None:
    Line.objects.filter(pk=line.pk, fence=claim.fence).update(num_faults=F("num_faults") + 1)


def _mine(claim: Claim) -> QuerySet[Line]:
    return Line.objects.filter(chunk_id=claim.chunk_pk, state=LineState.CLAIMED, fence=claim.fence)
