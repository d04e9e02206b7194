"""Final usage of requests whose session died, for whoever settles their reservations."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from inference_engine.contract.events import Usage

NUM_TRIES = 20

log = structlog.get_logger(__name__)

# A settled reservation is gone and must not come back as a stub; a newer attempt's figures must stay.
_WRITE = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local written = redis.call('HGET', KEYS[1], ARGV[1])
if written and tonumber(string.match(written, '^%d+')) > tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], table.concat(ARGV, ' ', 2))
return 1
"""


@dataclass(frozen=True, slots=True)
class OrphanUsage:
    """Of one choice. Several may share a reservation; those of one group have one prompt."""

    reservation_key: str
    request_id: str
    attempt: int
    group_id: str
    usage: Usage

    def field(self) -> str:
        return f"engine_usage:{self.request_id}"

    def figures(self) -> tuple[int | str, ...]:
        """Attempt, prompt, cached and output tokens, and what the prompt belongs to, joined by spaces."""
        usage = self.usage
        tokens = (usage.prompt_tokens, usage.cached_tokens, usage.output_tokens)
        return (self.attempt, *tokens, self.group_id or self.request_id)


class OrphanWriter:
    """Asyncio thread only. Tries for a while; after that the sweeper settles from the last lease renewal.

    A Redis that dies may have answered for what its file does not hold yet, two seconds long, so what was
    written is written once more when that time is over; a reservation settled meanwhile takes no notice.
    """

    def __init__(self, redis: "Redis | None", *, retry_s: float = 0.5, again_s: float = 3.0) -> None:
        self._redis = redis
        self._retry_s = retry_s
        self._again_s = again_s
        self._writing: set[asyncio.Task[None]] = set()
        self._repeating: set[asyncio.Task[None]] = set()

    def submit(self, orphans: list[OrphanUsage]) -> None:
        if self._redis is None or not orphans:
            return
        self._start(self._writing, self._keep_writing(self._redis, orphans))

    async def flush(self) -> None:
        """Wait for what is being written; nothing is written a second time."""
        for task in self._repeating:
            task.cancel()
        if self._writing:
            await asyncio.wait(self._writing)

    async def _keep_writing(self, redis: "Redis", orphans: list[OrphanUsage]) -> None:
        for _ in range(NUM_TRIES):
            if await self._write(redis, orphans):
                self._start(self._repeating, self._write_again(redis, orphans))
                return
            await asyncio.sleep(self._retry_s)
        log.warning("orphans_not_written", num_requests=len(orphans))

    async def _write_again(self, redis: "Redis", orphans: list[OrphanUsage]) -> None:
        await asyncio.sleep(self._again_s)
        await self._write(redis, orphans)

    async def _write(self, redis: "Redis", orphans: list[OrphanUsage]) -> bool:
        try:
            for orphan in orphans:
                await redis.eval(_WRITE, 1, orphan.reservation_key, orphan.field(), *orphan.figures())
        except (RedisError, OSError):
            return False
        return True

    def _start(self, tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
