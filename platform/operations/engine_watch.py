"""Notices an engine that still exists but no longer lives, from its record in Redis, so that it is restarted.

A stopped or wedged process keeps its sockets, and the kernel reports no death. Its record, renewed twice a
second, expires.
"""

import asyncio
import contextlib
import signal

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
LOST_AFTER_LOOKS = 4
"""In a row without a record, which itself outlives the last heartbeat by three seconds. Counted in looks, not
by the clock: after a stall of the whole machine the record has run out, and an engine may need a moment."""


class EngineWatch:
    """`record` is the engine's own account of itself, None while there is none."""

    def __init__(self, redis: Redis, engine: ChildProcess) -> None:
        self.record: ReplicaRecord | None = None
        self.num_kills = 0
        self._redis = redis
        self._engine = engine
        self._ready_pid: int | None = None
        self._num_missed = 0

    @property
    def is_ready(self) -> bool:
        return self.record is not None and self.record.state is ReplicaState.READY

    async def run(self) -> None:
        while True:
            with contextlib.suppress(RedisError, OSError):
                self.record = await self._find_record()
                self._judge()
            await asyncio.sleep(LOOK_EVERY_S)

    async def _find_record(self) -> ReplicaRecord | None:
        members = [_bytes(member).decode() for member in await self._redis.smembers(REPLICA_SET_KEY)]
        encoded = await self._redis.mget([record_key(member) for member in members]) if members else []
        records = [decode_record(_bytes(data)) for data in encoded if data is not None]
        return next((record for record in records if record.pid == self._engine.pid), None)

    def _judge(self) -> None:
        """Only a process that has been ready is judged: loading a model may rightly take its time."""
        pid = self._engine.pid
        if self.record is not None:
            self._num_missed = 0
            self._ready_pid = pid if self.is_ready else self._ready_pid
            return
        self._num_missed += 1
        if pid is not None and pid == self._ready_pid and self._num_missed > LOST_AFTER_LOOKS:
            self._engine.signal(signal.SIGKILL)
            self._ready_pid = None
            self.num_kills += 1


def _bytes(answer: bytes | str) -> bytes:
    """The client is not told to decode, which its annotations do not know."""
    return answer.encode() if isinstance(answer, str) else answer
