"""`manage.py ledger_writer` as a process: it writes, it survives, it ends when told to."""

import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from django.db import connections

from admission.facts import RequestFacts
from admission.gate import gate
from admission.settlement import finish_settlements
from api_keys.authentication import authenticate
from api_keys.models import ApiKey
from servers_of_tests import RedisServer, wait_until
from tenants.models import Tenant
from tenants.shards import epoch_key
from usage.models import Ending, LedgerEntry

ROOT = Path(__file__).resolve().parents[3]
InThread = Callable[..., Awaitable[Any]]
KeyAndSecret = tuple[ApiKey, str]


@pytest.fixture
def start(server: RedisServer, tmp_path: Path, transactional_db: None) -> Iterator[Callable[[], Any]]:
    """Starts writers on this test's database and Redis."""
    started: list[subprocess.Popen[bytes]] = []
    environment = {
        **os.environ,
        "DATABASE_URL": f"sqlite://{connections['default'].settings_dict['NAME']}",
        "REDIS_URL": server.url,
        "OCTAVO_LEASE_SECONDS": "1",
    }

    def run() -> subprocess.Popen[bytes]:
        command = [sys.executable, str(ROOT / "manage.py"), "ledger_writer"]
        with open(tmp_path / f"log-{len(started)}", "wb") as log:
            process = subprocess.Popen(command, env=environment, stderr=log, stdout=log)
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()


async def run_through(header: str, facts: RequestFacts) -> None:
    async with gate(await authenticate(header), facts) as admission:
        admission.record(prompt_tokens=7, output_tokens=2)
        admission.finish(Ending.FINISHED)
    await finish_settlements()


async def test_rows_are_written_through_kills_and_restarts_and_the_end_is_clean(
    start: Callable[[], "subprocess.Popen[bytes]"],
    server: RedisServer,
    key_and_secret: KeyAndSecret,
    facts: Callable[..., RequestFacts],
    in_thread: InThread,
) -> None:
    header = f"Bearer {key_and_secret[1]}"

    def num_rows() -> int:
        return LedgerEntry.objects.count()

    async def wait_for_rows(number: int) -> None:
        await in_thread(wait_until, lambda: num_rows() == number, f"{number} rows", 60)

    writer = start()
    await run_through(header, facts("a"))
    await wait_for_rows(1)

    writer.send_signal(signal.SIGKILL)
    writer.wait()
    await run_through(header, facts("b"))
    writer = start()
    await wait_for_rows(2)

    await in_thread(server.restart)
    await run_through(header, facts("c"))
    await wait_for_rows(3)

    writer.send_signal(signal.SIGTERM)
    assert writer.wait(30) == 0


async def test_it_sweeps_what_nobody_renews_and_reconciles_epochs(
    start: Callable[[], "subprocess.Popen[bytes]"],
    server: RedisServer,
    key_and_secret: KeyAndSecret,
    facts: Callable[..., RequestFacts],
    in_thread: InThread,
    settings: object,
) -> None:
    settings.OCTAVO_LEASE_SECONDS = 1.0  # type: ignore[attr-defined]
    settings.OCTAVO_LEASE_RENEWAL_SECONDS = 60.0  # type: ignore[attr-defined]
    key = key_and_secret[0]
    await in_thread(Tenant.objects.filter(pk=key.tenant_id).update, policy_epoch=1)
    async with gate(await authenticate(f"Bearer {key_and_secret[1]}"), facts("a")) as admission:
        await in_thread(Tenant.objects.filter(pk=key.tenant_id).update, policy_epoch=9)
        start()
        await in_thread(wait_until, lambda: LedgerEntry.objects.exists(), "the row", 60)
        admission.finish(Ending.FINISHED)
    await finish_settlements()
    (entry,) = await in_thread(lambda: list(LedgerEntry.objects.all()))
    assert (entry.ending, entry.source) == ("failed", "estimated")

    def epoch() -> bytes | None:
        with redis.Redis.from_url(server.url) as client:
            return client.get(epoch_key(key.tenant_id))  # type: ignore[return-value]

    await in_thread(wait_until, lambda: epoch() == b"9", "the reconciled epoch", 60)
