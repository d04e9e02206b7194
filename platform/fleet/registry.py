"""Which engines say in Redis that they exist."""

import msgspec
import structlog
from redis.asyncio import Redis

from inference_engine.contract.registry import REPLICA_SET_KEY, ReplicaRecord, decode_record, record_key
from inference_engine.contract.wire import OLDEST_VERSION

log = structlog.get_logger("fleet")


async def read_records(redis: Redis) -> dict[str, ReplicaRecord]:
    """Live records by replica id. Members whose record has expired are removed. Raises redis.RedisError."""
    ids = sorted(_text(member) for member in await redis.smembers(REPLICA_SET_KEY))
    if not ids:
        return {}
    values = await redis.mget([record_key(replica_id) for replica_id in ids])
    gone = [replica_id for replica_id, value in zip(ids, values, strict=True) if value is None]
    if gone:
        await redis.srem(REPLICA_SET_KEY, *gone)
    found = (_readable(replica_id, value) for replica_id, value in zip(ids, values, strict=True) if value)
    return {record.replica_id: record for record in found if record is not None}


def _readable(replica_id: str, value: bytes | str) -> ReplicaRecord | None:
    try:
        record = decode_record(value if isinstance(value, bytes) else value.encode())
    except msgspec.DecodeError as error:
        log.warning("unreadable_replica_record", replica=replica_id, error=str(error))
        return None
    return record if record.protocol_version >= OLDEST_VERSION else None


def _text(member: bytes | str) -> str:
    return member.decode("utf-8", "replace") if isinstance(member, bytes) else member
