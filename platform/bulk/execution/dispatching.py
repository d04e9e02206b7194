"""Which chunks are worked on now: as many as there are places, fairly among tenants, each one's oldest first.

They wait in the database, not in the broker's queue, so that nobody's ten lines stand behind somebody else's
fifty thousand. Chunks that began together end together: one more may begin once half a chunk's lines are
done, so that an engine has lines to go on with.
"""

from collections import Counter
from datetime import timedelta

from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils import timezone

from bulk.announcing import announce_chunk
from bulk.limits import LINES_PER_CHUNK
from bulk.models import UNFINISHED, Batch, BatchStatus, Chunk, Line

QUEUED_LEASES = 2
"""How many leases long a task may wait for a worker before it is announced again."""


def dispatch() -> int:
    """How many chunks were handed out."""
    num_given = 0
    while (chunk := _next_chunk()) is not None:
        if not _take(chunk):
            continue
        if not announce_chunk(chunk.pk):
            Chunk.objects.filter(pk=chunk.pk, is_done=False).update(taken_until=None)
            break
        num_given += 1
    return num_given


def _next_chunk() -> Chunk | None:
    """None: every place is taken, or nothing is to be done."""
    live = _live_by_tenant()
    if not _has_place(live.total()):
        return None
    now = timezone.now()
    running = Batch.objects.filter(status=BatchStatus.IN_PROGRESS, expires_at__gt=now)
    tenants = set(running.order_by().values_list("tenant_id", flat=True).distinct())
    for tenant_id in sorted(tenants, key=lambda tenant_id: (live[tenant_id], tenant_id)):
        ready = _ready().filter(batch__tenant_id=tenant_id, batch__in=running)
        chunk = ready.order_by("batch_id", "number").first()
        if chunk is not None:
            return chunk
    return None


def _has_place(num_live: int) -> bool:
    num_places = settings.OCTAVO_BULK_CHUNKS
    if num_live != num_places:
        return num_live < num_places
    num_lines = Line.objects.filter(chunk__in=_live(), state__in=UNFINISHED).count()
    return 2 * num_lines <= (2 * num_places - 1) * LINES_PER_CHUNK


def _live_by_tenant() -> Counter[int]:
    return Counter(_live().values_list("batch__tenant_id", flat=True))


def _live() -> "QuerySet[Chunk]":
    return Chunk.objects.filter(
        batch__status=BatchStatus.IN_PROGRESS, is_done=False, taken_until__gt=timezone.now()
    )


def _ready() -> "QuerySet[Chunk]":
    now = timezone.now()
    is_free = Q(taken_until=None) | Q(taken_until__lte=now)
    may_begin = Q(not_before=None) | Q(not_before__lte=now)
    return Chunk.objects.filter(is_free, may_begin, is_done=False)


def _take(chunk: Chunk) -> bool:
    """Whether nobody else did."""
    queued = timedelta(seconds=QUEUED_LEASES * settings.OCTAVO_BULK_LEASE_SECONDS)
    return bool(_ready().filter(pk=chunk.pk).update(taken_until=timezone.now() + queued))
