"""Writes of stored responses."""

from collections.abc import Sequence
from datetime import datetime

from django.db import DataError, IntegrityError, transaction

from conversations.models import StoredResponse
from conversations.selectors import responses_named


def keep(responses: Sequence[StoredResponse]) -> set[str]:
    """All in one transaction; what they continue lives as long as they do. Answers the ids of those kept.

    One that the database won't have, as when its tenant is gone, doesn't stop the others. Raises
    OperationalError or InterfaceError while the database is away.
    """
    try:
        with transaction.atomic():
            StoredResponse.objects.bulk_create(responses)
            for response in responses:
                _keep_ancestors(response)
    except (DataError, IntegrityError):
        if len(responses) == 1:
            return set()
        return {kept for response in responses for kept in keep([response])}
    return {response.pk for response in responses}


def _keep_ancestors(response: StoredResponse) -> None:
    if response.ancestors:
        StoredResponse.objects.filter(
            tenant_id=response.tenant_id, pk__in=response.ancestors, expires_at__lt=response.expires_at
        ).update(expires_at=response.expires_at)


def delete_response(tenant_id: int, response_id: str) -> bool:
    """Whether there was one."""
    deleted, _ = responses_named(tenant_id, response_id).delete()
    return deleted > 0


def delete_expired(now: datetime, *, batch_size: int = 500) -> int:
    """One bounded batch. Answers how many were deleted."""
    oldest = StoredResponse.objects.filter(expires_at__lt=now).order_by("expires_at")
    ids = list(oldest.values_list("pk", flat=True)[:batch_size])
    deleted, _ = StoredResponse.objects.filter(pk__in=ids).delete()
    return deleted
