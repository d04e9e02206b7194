"""Reads of stored responses. Another tenant's is as absent as one that never was."""

from conversations.models import StoredResponse


def find_response(tenant_id: int, response_id: str) -> StoredResponse | None:
    return StoredResponse.objects.filter(tenant_id=tenant_id, pk=response_id).first()


def conversation_up_to(tenant_id: int, response_id: str) -> list[StoredResponse] | None:
    """The response and all before it, the first one first; None where one of them is missing."""
    last = find_response(tenant_id, response_id)
    if last is None:
        return None
    found = StoredResponse.objects.filter(tenant_id=tenant_id).in_bulk(last.ancestors)
    if len(found) < len(last.ancestors):
        return None
    return [*(found[ancestor] for ancestor in last.ancestors), last]
