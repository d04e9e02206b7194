"""Notices an engine that still exists but no longer lives, from its record in Redis, so that it is restarted.

A stopped or wedged process keeps its sockets, and the kernel reports no death. Its record, renewed twice a
second, expires.
"""

import asyncio
import contextlib
import signal
import time

from redis.asyncio import Redis
from redis.exceptions import RedisError

from inference_engine.contract.registry import (
    REPLICA_SET_KEY,
    ReplicaRecord,
    ReplicaState,
    decode_record,
    record_key,
)
from operations.child_process import ChildProcess

LOOK_EVERY_S = 0.5
LOST_AFTER_S = 2.0
"""Without a record, which itself outlives the last heartbeat by three seconds."""


class EngineWatch:
    """`record` is the engine's own account of itself, None while there is none."""

    def __init__(self, redis: Redis, engine: ChildProcess) -> None:
        self.record: ReplicaRecord | None = None
        self.num_kills = 0
        self._redis = redis
        self._engine = engine
        self._ready_pid: int | None = None
        self._seen_at = 0.0

    @property
    def is_ready(self) -> bool:
        return self.record is not None and self.record.state is ReplicaState.READY

    async def run(self) -> None:
        while True:
            with contextlib.suppress(RedisError, OSError):
                self.record = await self._find_record()
                self._judge(time.monotonic())
            await asyncio.sleep(LOOK_EVERY_S)

    async def _find_record(self) -> ReplicaRecord | None:
        members = [_bytes(member).decode() for member in await self._redis.smembers(REPLICA_SET_KEY)]
        encoded = await self._redis.mget([record_key(member) for member in members]) if members else []
        records = [decode_record(_bytes(data)) for data in encoded if data is not None]
        return next((record for record in records if record.pid == self._engine.pid), None)

    def _judge(self, now: float) -> None:
        """Only a process that has been ready is judged: loading a model may rightly take its time."""
        pid = self._engine.pid
        if self.record is not None:
            self._seen_at = now
            self._ready_pid = pid if self.is_ready else self._ready_pid
        elif pid is not None and pid == self._ready_pid and now - self._seen_at > LOST_AFTER_S:
            self._engine.signal(signal.SIGKILL)
            self._ready_pid = None
            self.num_kills += 1


def _bytes(answer: bytes | str) -> bytes:
    """The client is not told to decode, which its annotations do not know."""
    return answer.encode() if isinstance(answer, str) else answer
