"""The policy epochs in Redis, for code on an event loop (tenants/policy_epochs.py is where they rise)."""

from quotas.store import async_redis, closed_when_unreachable
from tenants.policy_epochs import SET_IF_GREATER
from tenants.shards import epoch_key


async def read_epoch(tenant_id: str) -> int | None:
    """The policy epoch that Redis knows. Raises Denied(STORE_UNAVAILABLE)."""
    async with closed_when_unreachable():
        known = await async_redis().get(epoch_key(tenant_id))
    return None if known is None else int(known)


async def publish_epoch(tenant_id: str, epoch: int) -> None:
    """Raises Denied(STORE_UNAVAILABLE)."""
    async with closed_when_unreachable():
        await async_redis().eval(SET_IF_GREATER, 1, epoch_key(tenant_id), epoch)
