"""Final usage of requests whose session died, for whoever settles their reservations."""

import asyncio
from dataclasses import dataclass

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from inference_engine.contract.events import Usage

log = structlog.get_logger(__name__)

# A settled reservation is gone and must not come back as a stub; a newer attempt's figures must stay.
_WRITE = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local written = tonumber(redis.call('HGET', KEYS[1], 'engine_attempt') or '-1')
if written > tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'engine_attempt', ARGV[1], 'engine_prompt_tokens', ARGV[2],
  'engine_cached_tokens', ARGV[3], 'engine_output_tokens', ARGV[4])
return 1
"""


@dataclass(frozen=True, slots=True)
class OrphanUsage:
    reservation_key: str
    attempt: int
    usage: Usage


class OrphanWriter:
    """Best effort: else the sweeper settles from the last lease renewal. Asyncio thread only."""

    def __init__(self, redis: "Redis | None") -> None:
        self._redis = redis
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(self, orphans: list[OrphanUsage]) -> None:
        if self._redis is None or not orphans:
            return
        task = asyncio.get_running_loop().create_task(self._write(self._redis, orphans))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def flush(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _write(self, redis: "Redis", orphans: list[OrphanUsage]) -> None:
        try:
            for orphan in orphans:
                usage = orphan.usage
                figures = (usage.prompt_tokens, usage.cached_tokens, usage.output_tokens)
                await redis.eval(_WRITE, 1, orphan.reservation_key, orphan.attempt, *figures)
        except (RedisError, OSError) as error:
            log.warning("orphans_not_written", num_requests=len(orphans), error=str(error))
