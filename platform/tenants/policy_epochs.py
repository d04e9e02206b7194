"""The policy epoch: a number per tenant that rises with every change of what its keys may do.

It rises in the transaction that changes the policy; after the commit Redis learns it, and from then on a
reservation for a principal with an older epoch is refused as stale. Redis keeps the greatest it was told.
"""

from collections.abc import Iterable

import redis
import structlog
from django.db import transaction
from django.db.models import F

from tenants.models import Tenant
from tenants.shards import blocking_redis, epoch_key

log = structlog.get_logger(__name__)

POLICY_VERSION_KEY = "octavo:policy_version"
"""Rises whenever any epoch does: a hint that some policy has changed, for whoever follows all of them."""

SET_IF_GREATER = """
local known = tonumber(redis.call('GET', KEYS[1]) or '-1')
if tonumber(ARGV[1]) > known then redis.call('SET', KEYS[1], ARGV[1]) return 1 end
return 0
"""


def raise_policy_epoch(tenant: Tenant) -> None:
    """Call inside the transaction of the change. The service returns once Redis has the new epoch."""
    Tenant.objects.filter(pk=tenant.pk).update(policy_epoch=F("policy_epoch") + 1)
    tenant.refresh_from_db(fields=["policy_epoch"])
    tenant_id, epoch = tenant.pk, tenant.policy_epoch
    transaction.on_commit(lambda: _publish_or_log(tenant_id, epoch))


def _publish_or_log(tenant_id: int, epoch: int) -> None:
    """The change is committed whatever Redis says. Down, it admits nothing; then it is reconciled."""
    try:
        publish_epochs([(tenant_id, epoch)])
    except redis.RedisError as error:
        log.error("policy_epoch_not_published", tenant_id=tenant_id, epoch=epoch, error=str(error))


def publish_epochs(epochs: Iterable[tuple[int, int]]) -> int:
    """Set each (tenant id, epoch) in Redis if greater; answers how many were. Raises RedisError."""
    with blocking_redis().pipeline(transaction=False) as pipeline:
        for tenant_id, epoch in epochs:
            pipeline.eval(SET_IF_GREATER, 1, epoch_key(tenant_id), epoch)
        num_set = sum(pipeline.execute())
    if num_set:
        blocking_redis().incr(POLICY_VERSION_KEY)
    return num_set


def reconcile_epochs(chunk_size: int = 500) -> int:
    """Compare every tenant's epoch with Redis: heals a publication that a crash or an outage swallowed."""
    num_set = 0
    rows = list(Tenant.objects.order_by("pk").values_list("pk", "policy_epoch"))
    for start in range(0, len(rows), chunk_size):
        num_set += publish_epochs(rows[start : start + chunk_size])
    return num_set
