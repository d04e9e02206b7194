"""Reads of API keys."""

from django.db.models import OuterRef, QuerySet, Subquery

from api_keys.models import ApiKey
from api_keys.secrets_format import KnownSecret
from usage.models import LedgerEntry


def find_key(public_id: str) -> ApiKey | None:
    """With its tenant, in one query."""
    return ApiKey.objects.select_related("tenant").filter(public_id=public_id).first()


def with_last_use(keys: "QuerySet[ApiKey]") -> "QuerySet[ApiKey]":
    """Each with `last_used_at`: when its newest request ended, None where the ledger has none.

    One look into an index for each key that is shown, and nothing to be written while keys are used.
    """
    of_key = LedgerEntry.objects.filter(key_id=OuterRef("public_id")).order_by("-finished_at")
    return keys.annotate(last_used_at=Subquery(of_key.values("finished_at")[:1]))


def known_secret_of(key: ApiKey) -> KnownSecret:
    previous = key.previous_digest
    return KnownSecret(bytes(key.digest), None if previous is None else bytes(previous), key.previous_until)
