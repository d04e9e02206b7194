"""The workers' health: what the replicas say of themselves in the registry."""

import time
from dataclasses import dataclass
from typing import Any

import msgspec
import redis
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from inference_engine.contract.registry import REPLICA_SET_KEY, ReplicaRecord, decode_record, record_key
from tenants.shards import blocking_redis

HEADERS = (
    "replica",
    "model",
    "state",
    "heartbeat",
    "running",
    "waiting",
    "blocks in use",
    "cached",
    "free",
    "address",
)


@dataclass(frozen=True, slots=True)
class Workers:
    rows: list[tuple[str, ...]]
    problem: str = ""


def workers_page(request: HttpRequest) -> HttpResponse:
    found = read_workers(time.time())
    context: dict[str, Any] = {
        **admin.site.each_context(request),
        "title": "Workers",
        "table": {"headers": HEADERS, "rows": found.rows},
        "problem": found.problem,
    }
    return render(request, "console/workers.html", context)


def read_workers(now: float) -> Workers:
    """A replica whose record has expired is listed as lost until a gateway forgets it."""
    client = blocking_redis()
    try:
        ids = sorted(member.decode() for member in client.smembers(REPLICA_SET_KEY))  # type: ignore[union-attr]
        records: Any = client.mget([record_key(each) for each in ids]) if ids else []
    except redis.RedisError:
        return Workers([], "Redis can't be reached.")
    return Workers([_row(each, data, now) for each, data in zip(ids, records, strict=True)])


def _row(replica_id: str, data: bytes | None, now: float) -> tuple[str, ...]:
    if data is None:
        return (replica_id, "", "lost", *[""] * (len(HEADERS) - 3))
    try:
        record = decode_record(data)
    except msgspec.DecodeError:  # ValidationError is one of them
        return (replica_id, "", "unreadable record", *[""] * (len(HEADERS) - 3))
    return _cells(record, now)


def _cells(record: ReplicaRecord, now: float) -> tuple[str, ...]:
    stats = record.stats
    return (
        record.replica_id,
        record.model,
        record.state.value,
        f"{max(0.0, now - record.heartbeat_at):.1f} s ago",
        str(stats.num_running),
        str(stats.num_waiting),
        f"{stats.blocks_referenced} of {stats.blocks_total}",
        str(stats.blocks_cached),
        str(stats.blocks_free),
        record.address,
    )
