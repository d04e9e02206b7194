"""Reads of batches. Another tenant's isn't there."""

from django.db.models import Q, QuerySet
from django.utils import timezone

from bulk.models import OPEN, Batch, BatchStatus, Chunk


def batches_of(tenant_id: int) -> QuerySet[Batch]:
    """Newest first."""
    return with_files(Batch.objects.filter(tenant_id=tenant_id)).order_by("-id")


def with_files(batches: QuerySet[Batch]) -> QuerySet[Batch]:
    return batches.select_related("input_file", "output_file", "error_file")


def find_batch(tenant_id: int, public_id: str) -> Batch | None:
    return batches_of(tenant_id).filter(public_id=public_id).first()


def num_open(tenant_id: int) -> int:
    return Batch.objects.filter(tenant_id=tenant_id, status__in=OPEN).count()


def due_to_end() -> QuerySet[Batch]:
    """Those whose end is all that is left to be done, or has been asked for."""
    is_ending = Q(status__in=(BatchStatus.FINALIZING, BatchStatus.CANCELLING))
    unfinished = Chunk.objects.filter(is_done=False).values("batch_id")
    is_through = ~Q(pk__in=unfinished) | Q(expires_at__lte=timezone.now())
    return Batch.objects.filter(is_ending | Q(status=BatchStatus.IN_PROGRESS) & is_through)
