"""Writes of stored responses."""

from collections.abc import Sequence
from datetime import datetime

from django.db import IntegrityError, transaction

from conversations.models import StoredResponse


def keep(responses: Sequence[StoredResponse]) -> None:
    """All of them, in one transaction; what they continue is kept as long as they are.

    One whose tenant is gone is left out. Raises DatabaseError or InterfaceError.
    """
    try:
        with transaction.atomic():
            StoredResponse.objects.bulk_create(responses)
            for response in responses:
                _keep_ancestors(response)
    except IntegrityError:
        if len(responses) > 1:
            for response in responses:
                keep([response])


def _keep_ancestors(response: StoredResponse) -> None:
    if response.ancestors:
        StoredResponse.objects.filter(
            tenant_id=response.tenant_id, pk__in=response.ancestors, expires_at__lt=response.expires_at
        ).update(expires_at=response.expires_at)


def delete_response(tenant_id: int, response_id: str) -> bool:
    """Whether there was one."""
    deleted, _ = StoredResponse.objects.filter(tenant_id=tenant_id, pk=response_id).delete()
    return deleted > 0


def delete_expired(now: datetime, *, batch_size: int = 500) -> int:
    """One bounded batch. Answers how many were deleted."""
    oldest = StoredResponse.objects.filter(expires_at__lt=now).order_by("expires_at")
    ids = list(oldest.values_list("pk", flat=True)[:batch_size])
    deleted, _ = StoredResponse.objects.filter(pk__in=ids).delete()
    return deleted
