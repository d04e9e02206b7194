"""Reads of stored responses. Another tenant's is as absent as one that never was."""

from django.db.models import QuerySet

from conversations.models import StoredResponse


def find_response(tenant_id: int, response_id: str) -> StoredResponse | None:
    return responses_named(tenant_id, response_id).first()


def responses_named(tenant_id: int, response_id: str) -> QuerySet[StoredResponse]:
    """One or none. PostgreSQL refuses to compare anything with a NUL; clients choose what they ask for."""
    if "\x00" in response_id:
        return StoredResponse.objects.none()
    return StoredResponse.objects.filter(tenant_id=tenant_id, pk=response_id)


def conversation_up_to(tenant_id: int, response_id: str) -> list[StoredResponse] | None:
    """The response and all before it, the first one first; None where one of them is missing."""
    last = find_response(tenant_id, response_id)
    if last is None:
        return None
    found = StoredResponse.objects.filter(tenant_id=tenant_id).in_bulk(last.ancestors)
    if len(found) < len(last.ancestors):
        return None
    return [*(found[ancestor] for ancestor in last.ancestors), last]
