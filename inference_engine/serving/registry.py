"""This replica's record in Redis: renewed twice a second, gone three seconds after the process is."""

import asyncio
import os
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress

import structlog
from msgspec import structs
from redis.asyncio import Redis
from redis.exceptions import RedisError

from inference_engine.contract.events import Stats
from inference_engine.contract.limits import HEARTBEAT_INTERVAL_S, RECORD_TTL_S
from inference_engine.contract.registry import (
    REPLICA_SET_KEY,
    ReplicaRecord,
    ReplicaState,
    encode_record,
    record_key,
)
from inference_engine.contract.wire import PROTOCOL_VERSION

log = structlog.get_logger(__name__)


def first_record(replica_id: str, address: str, model: str, revision: str) -> ReplicaRecord:
    return ReplicaRecord(
        replica_id=replica_id,
        boot_id=secrets.token_hex(8),
        address=address,
        model=model,
        revision=revision,
        state=ReplicaState.STARTING,
        protocol_version=PROTOCOL_VERSION,
        host=socket.gethostname(),
        pid=os.getpid(),
        started_at=time.time(),
    )


class Registration:
    """Without Redis, or while it is away, sessions go on: only newcomers can't find this replica."""

    def __init__(self, redis: "Redis | None", record: ReplicaRecord) -> None:
        self._redis = redis
        self._record = record
        self._stats: Callable[[], Stats] = Stats
        self._changed = asyncio.Event()
        self._is_reachable = True
        self._is_withdrawn = False
        self._task = asyncio.create_task(self._publish_always(redis)) if redis is not None else None

    def announce(self, address: str, fingerprint: str, stats: Callable[[], Stats]) -> None:
        """Ready: gateways may connect. Published at once, not with the next heartbeat."""
        self._stats = stats
        self._record = structs.replace(
            self._record, address=address, fingerprint=fingerprint, state=ReplicaState.READY
        )
        self._changed.set()

    def drain(self) -> None:
        self._record = structs.replace(self._record, state=ReplicaState.DRAINING)
        self._changed.set()

    async def withdraw(self) -> None:
        """Remove the record, so that nobody is sent here any more. The task is told to end, not cancelled:
        a cancellation can get lost in the Redis client, whose time-outs bound the wait."""
        if self._task is None or self._redis is None:
            return
        self._is_withdrawn = True
        self._changed.set()
        await self._task
        try:
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.delete(record_key(self._record.replica_id))
                pipe.srem(REPLICA_SET_KEY, self._record.replica_id)
                await pipe.execute()
        except (RedisError, OSError) as error:
            log.warning("registry_unreachable", error=str(error))

    async def _publish_always(self, redis: "Redis") -> None:
        while not self._is_withdrawn:
            self._changed.clear()
            await self._publish(redis)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), HEARTBEAT_INTERVAL_S)

    async def _publish(self, redis: "Redis") -> None:
        record = structs.replace(self._record, heartbeat_at=time.time(), stats=self._stats())
        try:
            async with redis.pipeline(transaction=True) as pipe:
                pipe.set(record_key(record.replica_id), encode_record(record), px=int(RECORD_TTL_S * 1000))
                pipe.sadd(REPLICA_SET_KEY, record.replica_id)
                await pipe.execute()
        except (RedisError, OSError) as error:
            if self._is_reachable:
                log.warning("registry_unreachable", error=str(error))
            self._is_reachable = False
        else:
            if not self._is_reachable:
                log.info("registry_reachable")
            self._is_reachable = True
