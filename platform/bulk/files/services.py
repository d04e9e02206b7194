"""Changes of files. The content is stored before the row speaks of it, and is gone before the row says so."""

import contextlib
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from audit.services import record
from bulk.files.selectors import purgeable, stored_bytes
from bulk.files.storage import StorageUnavailable, discard, forget_copy, keep
from bulk.models import File, Purpose
from bulk.public_ids import file_id
from inference_engine.contract.codes import Code
from quotas.limits import LimitKind
from quotas.selectors import limit_of_tenant
from tenants.errors import Denied
from tenants.models import Tenant


def room_for_files(tenant_id: int) -> int:
    """Bytes that the tenant may still store; below 0: it has too much already."""
    limit = limit_of_tenant(tenant_id, LimitKind.STORED_BYTES) or settings.OCTAVO_FILE_BYTES_PER_TENANT
    return limit - stored_bytes(tenant_id)


def store_file(
    tenant_id: int,
    key_id: str,
    filename: str,
    purpose: Purpose,
    content: IO[bytes],
    *,
    expires_after_s: int | None = None,
    actor: str = "system",
) -> File:
    """Raises Denied (INSUFFICIENT_QUOTA), StorageUnavailable; then nothing is kept."""
    num_bytes = _size(content)
    name = file_id()
    stored = keep(content, f"{tenant_id}/{name}")
    try:
        with transaction.atomic():
            Tenant.objects.select_for_update().get(pk=tenant_id)
            check_room(tenant_id, num_bytes)
            file = File.objects.create(
                public_id=name,
                tenant_id=tenant_id,
                key_id=key_id,
                filename=filename,
                purpose=purpose,
                num_bytes=num_bytes,
                storage_name=stored,
                expires_at=expiry(expires_after_s),
            )
            details = {"filename": filename, "purpose": str(purpose), "bytes": num_bytes}
            record(actor, "file.create", f"file:{name}", details, tenant_id=tenant_id)
    except BaseException:
        discard(stored)
        raise
    return file


def check_room(tenant_id: int, num_bytes: int) -> None:
    """Raises Denied (INSUFFICIENT_QUOTA)."""
    room = room_for_files(tenant_id)
    if num_bytes > room:
        message = (
            f"This file of {num_bytes} bytes doesn't fit: this account may store {max(0, room)} bytes more."
        )
        raise Denied(Code.INSUFFICIENT_QUOTA, message, param="file")


def delete_file(file: File, *, actor: str = "system") -> None:
    """Gone for every reader at once; an open batch that reads it as its input goes on."""
    with transaction.atomic():
        changed = File.objects.filter(pk=file.pk, deleted_at=None).update(deleted_at=timezone.now())
        if changed:
            record(actor, "file.delete", f"file:{file.public_id}", tenant_id=file.tenant_id)
    with contextlib.suppress(StorageUnavailable):  # then beat's purge removes it
        _purge(purgeable().filter(pk=file.pk))


def purge_files(limit: int = 100) -> int:
    """Remove the contents of deleted and expired files. Raises StorageUnavailable."""
    return _purge(purgeable()[:limit])


def _purge(files: QuerySet[File]) -> int:
    found = list(files)
    for file in found:
        discard(file.storage_name)
        forget_copy(file)
        File.objects.filter(pk=file.pk).update(storage_name="", deleted_at=file.deleted_at or timezone.now())
    return len(found)


def expiry(after_s: int | None) -> datetime | None:
    """None: never."""
    seconds = after_s or settings.OCTAVO_FILE_DAYS * 86400
    return timezone.now() + timedelta(seconds=seconds) if seconds else None


def _size(content: IO[bytes]) -> int:
    content.seek(0, 2)
    size = content.tell()
    content.seek(0)
    return size


def scratch_folder() -> Path:
    """For what is being put together; on the same disk as the home."""
    folder = Path(settings.OCTAVO_HOME) / "tmp"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
