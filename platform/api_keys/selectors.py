"""Reads of API keys."""

from api_keys.models import ApiKey
from api_keys.secrets_format import KnownSecret


def find_key(public_id: str) -> ApiKey | None:
    """With its tenant, in one query."""
    return ApiKey.objects.select_related("tenant").filter(public_id=public_id).first()


def known_secret_of(key: ApiKey) -> KnownSecret:
    previous = key.previous_digest
    return KnownSecret(bytes(key.digest), None if previous is None else bytes(previous), key.previous_until)
