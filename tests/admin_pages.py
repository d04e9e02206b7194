"""How long the console's pages and the management API take beside a million ledger rows on PostgreSQL.

    make bench-admin ARGS="--rows 1000000"

Fills a cluster of its own, asks for each page a few times in process, through all middleware, and prints
medians in milliseconds; the last line is one JSON object.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from operations.redis_server import find_redis_server
from servers_of_tests import PostgresCluster, RedisServer, find_postgres

NUM_TENANTS, NUM_KEYS = 200, 1000
REPEATS = 5
DAYS = 90

FILL = """
INSERT INTO usage_ledgerentry (request_id, tenant_id, tenant_name, key_id, key_name, model, endpoint,
  prompt_tokens, cached_tokens, output_tokens, overrun_tokens, admitted_at, first_token_at, finished_at,
  queue_ms, ending, code, finish_reason, replica, "user", metadata, source, created_at)
SELECT 'req_' || md5(n::text), n %% %(tenants)s + 1, 'tenant ' || n %% %(tenants)s + 1,
  'key' || n %% %(keys)s, 'key', 'model-' || n %% 3, '/v1/chat/completions',
  100 + n %% 900, n %% 100, n %% 500, 0, at, NULL, at, 1.0,
  CASE WHEN n %% 50 = 0 THEN 'failed' WHEN n %% 20 = 0 THEN 'aborted' ELSE 'finished' END,
  '', 'stop', 'replica-1', '', '{}', 'authoritative', at
FROM generate_series(1, %(rows)s) AS n, LATERAL (
  SELECT now() - %(days)s * interval '1 day' * n / %(rows)s AS at
) AS moment
"""
SUMS = """
INSERT INTO {table} ({moment}, tenant_id, key_id, model, ending, num_requests, prompt_tokens, cached_tokens,
  output_tokens, overrun_tokens)
SELECT {expression}, tenant_id, key_id, model, ending, count(*), sum(prompt_tokens), sum(cached_tokens),
  sum(output_tokens), 0
FROM usage_ledgerentry GROUP BY 1, 2, 3, 4, 5
"""


def fill(num_rows: int) -> None:
    from django.db import connection

    from api_keys.models import ApiKey
    from tenants.models import Tenant

    tenants = [Tenant(name=f"tenant {n}", slug=f"tenant-{n}") for n in range(NUM_TENANTS)]
    Tenant.objects.bulk_create(tenants)
    owners = list(Tenant.objects.order_by("pk"))
    keys = [
        ApiKey(public_id=f"key{n}", digest=bytes(32), name=f"key {n}", tenant=owners[n % len(owners)])
        for n in range(NUM_KEYS)
    ]
    ApiKey.objects.bulk_create(keys)
    with connection.cursor() as cursor:
        cursor.execute(FILL, {"rows": num_rows, "tenants": NUM_TENANTS, "keys": NUM_KEYS, "days": DAYS})
        hour = "date_trunc('hour', admitted_at)"
        cursor.execute(SUMS.format(table="usage_hourlyusage", moment="hour", expression=hour))
        day = "(admitted_at AT TIME ZONE 'UTC')::date"
        cursor.execute(SUMS.format(table="usage_dailyusage", moment="day", expression=day))
        cursor.execute("ANALYZE")


def pages() -> dict[str, str]:
    """What is looked at, by its address."""
    from django.db.models import Max
    from django.urls import reverse

    from api_keys.models import ApiKey
    from tenants.models import Tenant
    from usage.models import LedgerEntry

    newest = LedgerEntry.objects.aggregate(Max("pk"))["pk__max"]
    request_id = LedgerEntry.objects.get(pk=newest // 2).request_id
    tenant, key = Tenant.objects.order_by("pk")[5], ApiKey.objects.order_by("pk")[5]
    ledger = reverse("admin:usage_ledgerentry_changelist")
    hours, days = (reverse(f"admin:usage_{kind}usage_changelist") for kind in ("hourly", "daily"))
    return {
        "dashboard": reverse("admin:index"),
        "tenants": reverse("admin:tenants_tenant_changelist"),
        "one tenant": reverse("admin:tenants_tenant_change", args=[tenant.pk]),
        "keys": reverse("admin:api_keys_apikey_changelist"),
        "keys, search": reverse("admin:api_keys_apikey_changelist") + f"?q={key.public_id}",
        "one key": reverse("admin:api_keys_apikey_change", args=[key.pk]),
        "limits": reverse("admin:quotas_limit_changelist"),
        "ledger": ledger,
        "ledger, page 200": f"{ledger}?p=200",
        "ledger, request id": f"{ledger}?q={request_id}",
        "ledger, unknown id": f"{ledger}?q=nothing",
        "ledger, key": f"{ledger}?q={key.public_id}",
        "ledger, failed": f"{ledger}?ending__exact=failed",
        "one ledger row": reverse("admin:usage_ledgerentry_change", args=[newest // 2]),
        "hours": hours,
        "hours, tenant": f"{hours}?q={tenant.pk}",
        "days": days,
        "days, key": f"{days}?q={key.public_id}",
        "audit": reverse("admin:audit_auditrecord_changelist"),
        "workers": reverse("workers"),
        "api: requests": "/api/v1/usage/requests/",
        "api: requests of a tenant": f"/api/v1/usage/requests/?tenant={tenant.pk}",
        "api: one request": f"/api/v1/usage/requests/{request_id}/",
        "api: hours of a tenant": f"/api/v1/usage/hourly/?tenant={tenant.pk}",
        "api: days": "/api/v1/usage/daily/",
        "api: totals": "/api/v1/usage/totals/",
        "api: totals of a tenant": f"/api/v1/usage/totals/?tenant={tenant.pk}",
        "api: keys": "/api/v1/keys/",
    }


def measure() -> dict[str, float]:
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(User.objects.create_superuser("operator"))
    taken: dict[str, float] = {}
    for name, address in pages().items():
        times = []
        for _ in range(REPEATS):
            started = time.perf_counter()
            response = client.get(address)
            times.append(1000 * (time.perf_counter() - started))
            assert response.status_code == 200, (name, response.status_code)
        taken[name] = round(statistics.median(times), 1)
        print(f"{taken[name]:8.1f}  {name}", file=sys.stderr, flush=True)
    return taken


def run(num_rows: int, home: Path) -> dict[str, Any]:
    programs, redis_binary = find_postgres(), find_redis_server()
    if programs is None or redis_binary is None:
        raise SystemExit("PostgreSQL's server programs and a redis-server are needed")
    redis, cluster = RedisServer(redis_binary, home / "redis"), PostgresCluster(programs, home / "cluster")
    os.environ |= {
        "OCTAVO_HOME": str(home),
        "REDIS_URL": redis.url,
        "DATABASE_URL": cluster.url,
        "DJANGO_SETTINGS_MODULE": "control_plane.settings",
        "OCTAVO_ALLOWED_HOSTS": "testserver",
        "OCTAVO_LOG_LEVEL": "ERROR",
    }
    redis.start()
    cluster.start()
    try:
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0, interactive=False)
        fill(num_rows)
        taken = measure()
    finally:
        cluster.stop()
        redis.kill()
    slowest = max(taken, key=taken.__getitem__)
    return {"rows": num_rows, "slowest_page": slowest, "slowest_ms": taken[slowest], "pages": taken}


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench-admin", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="octavo-admin-", ignore_cleanup_errors=True) as home:
        Path(home).chmod(0o711)
        print(json.dumps(run(options.rows, Path(home))))


if __name__ == "__main__":
    main()
