"""Rows on their way to the ledger: one Redis stream per bucket of tenants, one consumer group on each.

An entry is a flat map of strings: the reservation's fields, then those of the settlement.
"""

from tenants.shards import NUM_BUCKETS, bucket_key, tenant_key

STREAM = "ledger"
GROUP = "ledger"
CONSUMER = "writer"


def stream_key(tenant_id: str | int) -> str:
    return tenant_key(tenant_id, STREAM)


def all_stream_keys() -> list[str]:
    return [bucket_key(number, STREAM) for number in range(NUM_BUCKETS)]


def dead_letter_key(stream: str) -> str:
    """Where entries go that can't be read as a row, so that they don't hold up the others."""
    return f"{stream}:dead"
