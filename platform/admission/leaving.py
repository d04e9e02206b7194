"""Requests that have ended but whose places aren't free yet.

Settling runs in the background, so a client with a limit of one request at a time may be back with the next
one before the place of the last is free. It waits for that moment instead of being refused.
"""

import asyncio
from collections import defaultdict
from weakref import WeakKeyDictionary

PATIENCE_S = 1.0

Left = asyncio.Future[None]

_leaving: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, set[Left]]] = WeakKeyDictionary()


def leaving(tenant_id: str) -> Left:
    """A request of this tenant has ended; set the result when its place is free."""
    loop = asyncio.get_running_loop()
    left: Left = loop.create_future()
    of_tenant = _leaving.setdefault(loop, defaultdict(set))[tenant_id]
    of_tenant.add(left)
    left.add_done_callback(lambda done: _forget(loop, tenant_id, done))
    return left


async def somebody_left(tenant_id: str) -> bool:
    """Whether a place of this tenant became free, waiting for it only where one is about to."""
    of_tenant = _leaving.get(asyncio.get_running_loop(), {}).get(tenant_id)
    if not of_tenant:
        return False
    done, _ = await asyncio.wait(of_tenant, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
    return bool(done)


def _forget(loop: asyncio.AbstractEventLoop, tenant_id: str, left: Left) -> None:
    tenants = _leaving.get(loop, {})
    of_tenant = tenants.get(tenant_id, set())
    of_tenant.discard(left)
    if not of_tenant:
        tenants.pop(tenant_id, None)
