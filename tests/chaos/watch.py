"""Looks at the counters while the load runs: has anybody more than their limit?"""

import asyncio
import contextlib

import redis.asyncio

from chaos.world import LIMITS, World

EVERY_S = 0.02
HELD = """
local clock = redis.call('TIME')
return redis.call('ZCOUNT', KEYS[1], clock[1] * 1000 + math.floor(clock[2] / 1000) + 1, '+inf')
"""
"""Leases that have not ended, counted in one moment."""


class Watch:
    def __init__(self, world: World) -> None:
        self._world = world
        self.num_over = 0
        self.num_looks = 0
        self.is_over = False

    async def run(self) -> None:
        """Through every outage of Redis; looks that fail are not counted."""
        client = redis.asyncio.Redis.from_url(self._world.redis.url, socket_timeout=1)
        while not self.is_over:
            with contextlib.suppress(redis.RedisError, OSError):
                await self._look(client)
            await asyncio.sleep(EVERY_S)
        await client.aclose()

    async def _look(self, client: redis.asyncio.Redis) -> None:
        tenant = self._world.tenants["concurrency"]
        held = await client.eval(HELD, 1, f"octavo:{{b:{tenant}}}:leases:tenant:{tenant}")
        self.num_over += int(held) > LIMITS["concurrency"]["concurrent"]
        for name, kind in (("budget", "tokens_per_day"), ("month", "tokens_per_month")):
            async for key in client.scan_iter(f"octavo:{{b:{self._world.tenants[name]}}}:budget:*"):
                spent, reserved = await client.hmget(key, "spent", "reserved")
                self.num_over += int(spent or 0) + int(reserved or 0) > LIMITS[name][kind]
        self.num_looks += 1
