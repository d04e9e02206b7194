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
                await redis.eval(_WRITE, 1, orphan.reservation_key, orphan.field(), *orphan.figures())
        except (RedisError, OSError) as error:
            log.warning("orphans_not_written", num_requests=len(orphans), error=str(error))
