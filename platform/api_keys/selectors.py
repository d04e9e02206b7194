"""Reads of API keys."""

from api_keys.models import ApiKey


def find_key(public_id: str) -> ApiKey | None:
    """With its tenant, in one query."""
    return ApiKey.objects.select_related("tenant").filter(public_id=public_id).first()
