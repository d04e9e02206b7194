"""The workers' page: replicas as the registry has them."""

import pytest
import redis
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from console.workers import read_workers
from inference_engine.contract.events import Stats
from inference_engine.contract.registry import (
    REPLICA_SET_KEY,
    ReplicaRecord,
    ReplicaState,
    encode_record,
    record_key,
)
from servers_of_tests import RedisServer


def record(replica_id: str) -> ReplicaRecord:
    stats = Stats(
        num_running=3, num_waiting=4, blocks_total=100, blocks_free=60, blocks_cached=30, blocks_referenced=10
    )
    return ReplicaRecord(
        replica_id=replica_id,
        boot_id="b",
        address="unix:/run/engine.sock",
        model="smollm2",
        state=ReplicaState.READY,
        protocol_version=1,
        heartbeat_at=98.5,
        stats=stats,
    )


@pytest.fixture
def registry(redis_server: RedisServer, settings: object) -> redis.Redis:
    settings.REDIS_URL = redis_server.url  # type: ignore[attr-defined]
    return redis.Redis.from_url(redis_server.url)


def test_replicas_lost_ones_and_unreadable_ones_are_listed(registry: redis.Redis) -> None:
    registry.sadd(REPLICA_SET_KEY, "one", "two", "three")
    registry.set(record_key("one"), encode_record(record("one")))
    registry.set(record_key("two"), b"\xc1 nonsense")
    workers = read_workers(now=100.0)
    assert {row[0]: row[2] for row in workers.rows} == {
        "one": "ready",
        "two": "unreadable record",
        "three": "lost",
    }
    (one,) = [row for row in workers.rows if row[0] == "one"]
    assert one[1:] == (
        "smollm2", "ready", "1.5 s ago", "3", "4", "10 of 100", "30", "60", "unix:/run/engine.sock",
    )  # fmt: skip


def test_the_page_shows_the_table_or_says_what_is_wrong(
    transactional_db: None, registry: redis.Redis, redis_server: RedisServer
) -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("alice"))
    page = reverse("workers")
    assert "No replica is registered" in client.get(page).content.decode()
    registry.sadd(REPLICA_SET_KEY, "one")
    registry.set(record_key("one"), encode_record(record("one")))
    shown = client.get(page).content.decode()
    assert "smollm2" in shown and "10 of 100" in shown
    redis_server.kill()
    assert "Redis can&#x27;t be reached" in client.get(page).content.decode()
