"""The record an engine publishes in Redis so that gateways find it."""

from enum import StrEnum

from msgspec import Struct, msgpack

from .events import Stats

REPLICA_SET_KEY = "octavo:replicas"
"""Redis set of replica ids; a member whose record has expired is removed by whoever sees it."""


class ReplicaState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


class ReplicaRecord(Struct, frozen=True, omit_defaults=True, kw_only=True):
    replica_id: str
    boot_id: str
    """Drawn at every start: the same replica id with another boot id is another process."""
    address: str
    """gRPC target: `unix:/path` on-host, `host:port` off-host."""
    model: str
    revision: str = ""
    fingerprint: str = ""
    state: ReplicaState
    protocol_version: int
    host: str = ""
    pid: int = 0
    started_at: float = 0.0
    """Unix seconds, as is `heartbeat_at`."""
    heartbeat_at: float = 0.0
    stats: Stats = Stats()


def record_key(replica_id: str) -> str:
    """Redis string key that holds one encoded record, with a time to live of limits.RECORD_TTL_S."""
    return f"octavo:replica:{replica_id}"


def encode_record(record: ReplicaRecord) -> bytes:
    return msgpack.encode(record)


def decode_record(data: bytes) -> ReplicaRecord:
    """Raises msgspec.DecodeError on malformed bytes, msgspec.ValidationError on a wrong shape."""
    return msgpack.decode(data, type=ReplicaRecord)
