"""Where one tenant's live state lies in Redis, and the client of processes that may block.

All keys of a tenant share one hash tag, `{b:<tenant mod 64>}`, so that a script over several of them is one
call even in a cluster, and so that sweepers and the ledger's writer scan 64 shards instead of every tenant.
"""

import functools

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

NUM_BUCKETS = 64


def bucket(tenant_id: str | int) -> int:
    return int(tenant_id) % NUM_BUCKETS


def bucket_key(number: int, name: str) -> str:
    return f"octavo:{{b:{number}}}:{name}"


def tenant_key(tenant_id: str | int, name: str) -> str:
    return bucket_key(bucket(tenant_id), name)


def epoch_key(tenant_id: str | int) -> str:
    return tenant_key(tenant_id, f"epoch:{tenant_id}")


def blocking_redis() -> redis.Redis:
    """For services, commands and workers. One retry on a new connection: a restart of Redis is no error."""
    return _blocking_redis(settings.REDIS_URL, settings.OCTAVO_REDIS_TIMEOUT_SECONDS)


@functools.lru_cache(maxsize=4)
def _blocking_redis(url: str, timeout_s: float) -> redis.Redis:
    pool = redis.BlockingConnectionPool.from_url(
        url,
        max_connections=8,
        timeout=timeout_s,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=Retry(NoBackoff(), 1),
    )
    return redis.Redis(connection_pool=pool)
