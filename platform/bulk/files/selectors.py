"""Reads of files. One that is deleted, expired or another tenant's isn't there."""

from django.db.models import F, Q, QuerySet, Sum
from django.utils import timezone

from bulk.models import OPEN, Batch, File


def files_of(tenant_id: int) -> QuerySet[File]:
    """Newest first."""
    return present(File.objects.filter(tenant_id=tenant_id)).order_by("-id")


def present(files: QuerySet[File]) -> QuerySet[File]:
    return files.filter(deleted_at=None).filter(Q(expires_at=None) | Q(expires_at__gt=timezone.now()))


def find_file(tenant_id: int, public_id: str) -> File | None:
    return files_of(tenant_id).filter(public_id=public_id).first()


def stored_bytes(tenant_id: int) -> int:
    """Deleted ones included until their content is gone."""
    stored = File.objects.filter(tenant_id=tenant_id).exclude(storage_name="")
    return int(stored.aggregate(total=Sum("num_bytes", default=0))["total"])


def purgeable() -> QuerySet[File]:
    """Deleted or expired, with a content that no open batch reads."""
    now = timezone.now()
    gone = Q(deleted_at__isnull=False) | Q(expires_at__lte=now)
    in_use = Batch.objects.filter(status__in=OPEN).values("input_file_id")
    return File.objects.filter(gone).exclude(storage_name="").exclude(pk__in=in_use).order_by(F("id"))
