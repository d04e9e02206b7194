"""Everything that may be killed, in processes of its own, and the books to look into afterwards."""

import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import redis

from daytime import where_it_is_noon
from inference_engine.contract.events import Stats
from inference_engine.contract.registry import decode_record, record_key
from octavo_stack import ROOT, Stack
from servers_of_tests import PostgresCluster, RedisServer, find_postgres, free_port

GATEWAYS = ("gateway-1", "gateway-2")
ENGINES = ("engine-1", "engine-2")
LEASE_S = 3
FAKE_ENGINE = ("--fake", "--fake-step-ms", "10", "--num-blocks", "4096", "--max-running", "128")
LIMITS = {
    "concurrency": {"concurrent": 3},
    "requests": {"requests_per_minute": 120},
    "rate": {"tokens_per_minute": 6_000},
    "budget": {"tokens_per_day": 4_000},
    "month": {"tokens_per_month": 4_000},
    "free": {},
}
"""A tenant for each kind of limit; the limits lie where the load meets them."""
SCOPES = {"concurrency": "tenant", "requests": "key", "rate": "model", "budget": "key", "month": "model"}
BURSTS = {"requests": 10, "rate": 1_000}

PREPARE = """
import django, json, sys
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0, interactive=False, stdout=sys.stderr)
from api_keys.services import create_key
from quotas.services import set_limit
from tenants.services import create_tenant
limits, scopes, bursts, model, zone = map(json.loads, sys.argv[1:])
made = {}
for name, kinds in limits.items():
    tenant = create_tenant(name=name, slug=name, time_zone=zone)
    key, secret = create_key(tenant, "chaos")
    where = {"key": {"key": key}, "model": {"model": model}}.get(scopes.get(name), {})
    for kind, value in kinds.items():
        set_limit(tenant, kind, value, burst=bursts.get(name), **where)
    made[name] = [tenant.pk, secret]
print(json.dumps(made))
"""


class World(Stack):
    """Two gateways, two fake engines, one ledger writer, a Redis with its file, and the database named."""

    def __init__(self, home: Path, redis_binary: Path, model_dir: Path, database: str) -> None:
        super().__init__(home, redis_binary, model_dir, is_tied=True)
        self.redis = RedisServer(redis_binary, home, durable=True, is_tied=True)
        self.environment |= {
            "OCTAVO_LEASE_SECONDS": str(LEASE_S),
            "OCTAVO_LEASE_RENEWAL_SECONDS": "0.25",
            "OCTAVO_QUEUE_TIMEOUT_SECONDS": "20",
        }
        self.ports = {name: free_port() for name in GATEWAYS}
        self.tenants: dict[str, int] = {}
        self._postgres_home = TemporaryDirectory(prefix="octavo-pg-", ignore_cleanup_errors=True)
        self.postgres = _cluster(Path(self._postgres_home.name)) if database == "postgres" else None

    def start(self) -> None:
        if self.postgres is not None:
            self.postgres.start()
            self.environment["DATABASE_URL"] = self.postgres.url
        self.redis.start()
        arguments = [json.dumps(each) for each in (LIMITS, SCOPES, BURSTS, self.model, where_it_is_noon())]
        done = subprocess.run(
            [sys.executable, "-c", PREPARE, *arguments],
            env=self.environment,
            cwd=ROOT,
            check=True,
            stdout=subprocess.PIPE,
        )
        made = json.loads(done.stdout.splitlines()[-1])
        self.tenants = {name: pk for name, (pk, _) in made.items()}
        self.keys = {name: secret for name, (_, secret) in made.items()}
        for name in ENGINES:
            self.start_engine(*FAKE_ENGINE, name=name)
        self.start_ledger_writer()
        for name in GATEWAYS:
            self.start_one_gateway(name)
        for name in GATEWAYS:
            self.wait_gateway(name)

    def start_one_gateway(self, name: str) -> None:
        self._start(name, "gateway.server", "--port", str(self.ports[name]))

    def wait_gateway(self, name: str) -> None:
        self.port = self.ports[name]
        self.wait_ready()

    def stop(self) -> None:
        super().stop()
        if self.postgres is not None:
            self.postgres.stop()
        self._postgres_home.cleanup()

    # the database

    @contextmanager
    def database_away(self) -> Iterator[None]:
        """PostgreSQL killed; SQLite locked, so that nobody can write."""
        if self.postgres is not None:
            self.postgres.kill()
            try:
                yield
            finally:
                self.postgres.serve()
            return
        locked, release = threading.Event(), threading.Event()
        holder = threading.Thread(target=self._hold_lock, args=(locked, release))
        holder.start()
        try:
            assert locked.wait(20)
            yield
        finally:
            release.set()
            holder.join()

    def _hold_lock(self, locked: threading.Event, release: threading.Event) -> None:
        with closing(sqlite3.connect(self.home / "db.sqlite3", timeout=20, isolation_level=None)) as database:
            database.execute("BEGIN EXCLUSIVE")
            locked.set()
            release.wait()
            database.execute("ROLLBACK")

    def rows(self, query: str) -> list[dict[str, Any]]:
        if self.postgres is not None:
            with psycopg.connect(self.postgres.url, row_factory=psycopg.rows.dict_row) as database:
                return list(database.execute(query))  # type: ignore[call-overload]
        with closing(sqlite3.connect(self.home / "db.sqlite3", timeout=20)) as database:
            database.row_factory = sqlite3.Row
            return [dict(row) for row in database.execute(query)]

    # Redis

    def connect_redis(self) -> "redis.Redis":
        return redis.Redis.from_url(self.redis.url, socket_timeout=20)

    def reserved(self) -> int:
        """Reservations open, leases held and tokens reserved, of everybody."""
        with closing(self.connect_redis()) as client:
            open_ones = sum(client.zcard(key) for key in client.scan_iter("octavo:{b:*}:open"))
            leases = sum(client.zcard(key) for key in client.scan_iter("octavo:{b:*}:leases:*"))
            budgets = list(client.scan_iter("octavo:{b:*}:budget:*"))
            tokens = sum(int(client.hget(key, "reserved") or 0) for key in budgets)
            waiting = sum(client.xlen(key) for key in client.scan_iter("octavo:{b:*}:ledger"))
        return open_ones + leases + tokens + waiting

    def spent(self, tenant: str) -> int | None:
        with closing(self.connect_redis()) as client:
            for key in client.scan_iter(f"octavo:{{b:{self.tenants[tenant]}}}:budget:*"):
                return int(client.hget(key, "spent") or 0)
        return None

    def engine_stats(self) -> list[Stats]:
        with closing(self.connect_redis()) as client:
            records = [client.get(record_key(name)) for name in ENGINES]
        return [decode_record(bytes(found)).stats for found in records if found]

    def wait_quiet(self, ceiling_s: float) -> None:
        """Until nothing is reserved, held or on its way to the ledger; the caller judges what is left."""
        give_up_at = time.monotonic() + ceiling_s
        while self.reserved() and time.monotonic() < give_up_at:
            time.sleep(0.1)


def _cluster(home: Path) -> PostgresCluster:
    programs = find_postgres()
    if programs is None:
        raise SystemExit("no PostgreSQL server programs (initdb, postgres)")
    home.chmod(0o711)  # its server is another user where we are root
    return PostgresCluster(programs, home / "cluster", is_tied=True)
