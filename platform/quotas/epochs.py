"""The policy epochs in Redis, for code on an event loop (tenants/policy_epochs.py is where they rise)."""

from collections.abc import Collection

from quotas.store import async_redis, closed_when_unreachable
from tenants.policy_epochs import SET_IF_GREATER
from tenants.shards import epoch_key


async def read_epoch(tenant_id: str) -> int | None:
    """The policy epoch that Redis knows. Raises Denied(STORE_UNAVAILABLE)."""
    async with closed_when_unreachable():
        known = await async_redis().get(epoch_key(tenant_id))
    return None if known is None else int(known)


async def read_epochs(tenant_ids: Collection[str]) -> dict[str, int | None]:
    """Several, in one round trip. Raises Denied(STORE_UNAVAILABLE)."""
    async with closed_when_unreachable(), async_redis().pipeline(transaction=False) as pipeline:
        for tenant_id in tenant_ids:
            pipeline.get(epoch_key(tenant_id))
        known = await pipeline.execute()
    return {
        tenant_id: None if epoch is None else int(epoch)
        for tenant_id, epoch in zip(tenant_ids, known, strict=True)
    }


async def publish_epoch(tenant_id: str, epoch: int) -> None:
    """Raises Denied(STORE_UNAVAILABLE)."""
    async with closed_when_unreachable():
        await async_redis().eval(SET_IF_GREATER, 1, epoch_key(tenant_id), epoch)
