"""Case 26: whatever becomes of requests, their places, rates and budgets come back by themselves."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis
from django.db import connections

from admission import admitting
from admission.facts import RequestFacts
from admission.gate import gate
from admission.settlement import finish_settlements
from api_keys.authentication import authenticate
from api_keys.models import ApiKey
from inference_engine.contract.codes import Code
from polling import until
from quotas.services import set_limit
from quotas.sweeper import Sweeper
from reserving import run_out_all_leases
from servers_of_tests import RedisServer
from tenants.errors import Denied
from usage.ledger_writer import LedgerWriter
from usage.models import Ending, LedgerEntry

ROOT = Path(__file__).resolve().parents[3]
InThread = Callable[..., Awaitable[Any]]
Facts = Callable[..., RequestFacts]

LEASE_S = 60.0
"""None runs out before a test says so."""

# A gateway process that takes places and never gives them back.
HOLDER = """
import asyncio, sys, django
django.setup()
from admission.facts import RequestFacts
from admission.gate import gate
from api_keys.authentication import authenticate

async def hold(number):
    facts = RequestFacts(f"held{number}", "m", "/v1/completions", prompt_tokens=7, max_tokens=13)
    async with gate(await authenticate(sys.argv[1]), facts) as admission:
        admission.record(prompt_tokens=7, output_tokens=3)
        print("in", flush=True)
        await asyncio.Event().wait()

async def main():
    await asyncio.gather(hold(1), hold(2))

asyncio.run(main())
"""


@pytest.fixture
async def header(
    server: RedisServer, key_and_secret: tuple[ApiKey, str], in_thread: InThread, settings: object
) -> str:
    settings.OCTAVO_LEASE_SECONDS = LEASE_S  # type: ignore[attr-defined]
    key, plaintext = key_and_secret
    await in_thread(set_limit, key.tenant, "concurrent", 2)
    await in_thread(set_limit, key.tenant, "tokens_per_month", 1000)
    return f"Bearer {plaintext}"


@pytest.fixture
def holder(server: RedisServer, header: str) -> "Iterator[subprocess.Popen[str]]":
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "control_plane.settings",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}",
        "DATABASE_URL": f"sqlite://{connections['default'].settings_dict['NAME']}",
        "REDIS_URL": server.url,
        "OCTAVO_LEASE_SECONDS": str(LEASE_S),
    }
    command = [sys.executable, "-c", HOLDER, header]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def num_renewed(url: str) -> int:
    """Reservations that know what their requests used so far."""
    with redis.Redis.from_url(url) as client:
        names = list(client.scan_iter("octavo:{b:*}:reservation:*"))
        return sum(client.hget(name, "output_tokens") == b"3" for name in names)


def state(url: str) -> tuple[int, list[int]]:
    """Places taken, and what the budget knows: spent, reserved."""
    with redis.Redis.from_url(url) as client:
        taken = sum(client.zcard(name) for name in client.scan_iter("octavo:{b:*}:leases:tenant:*"))  # type: ignore[misc]
        (budget,) = client.scan_iter("octavo:{b:*}:budget:*")
        figures: Any = client.hmget(budget, "spent", "reserved")
    return taken, [int(figure) for figure in figures]


async def test_ten_cancelled_streams_leave_two_places_free(
    server: RedisServer, header: str, facts: Facts
) -> None:
    for number in range(5):
        inside = asyncio.Event()

        async def stream(name: str, inside: asyncio.Event = inside) -> None:
            async with gate(await authenticate(header), facts(name, max_tokens=13)) as admission:
                admission.record(prompt_tokens=7, output_tokens=1)
                inside.set()
                await asyncio.Event().wait()

        tasks = [asyncio.create_task(stream(f"r{number}-{each}")) for each in range(2)]
        await asyncio.wait_for(inside.wait(), 10)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await until(lambda: state(server.url)[0] == 0)
    spent, reserved = state(server.url)[1]
    assert reserved == 0 and spent % 8 == 0 and 5 * 8 <= spent <= 10 * 8


async def test_a_killed_process_gives_its_places_back_when_its_leases_run_out(
    server: RedisServer,
    header: str,
    holder: "subprocess.Popen[str]",
    facts: Facts,
    in_thread: InThread,
) -> None:
    assert holder.stdout is not None
    assert [await asyncio.to_thread(holder.stdout.readline) for _ in range(2)] == ["in\n"] * 2
    await until(lambda: num_renewed(server.url) == 2)
    with pytest.raises(Denied) as caught:
        async with gate(await authenticate(header), facts("third", max_tokens=3)):
            pytest.fail("a third one at once")
    assert caught.value.code is Code.CONCURRENCY_LIMIT_EXCEEDED
    assert state(server.url) == (2, [0, 40])
    holder.kill()
    holder.wait()
    run_out_all_leases(server.url)
    async with gate(await authenticate(header), facts("after", max_tokens=3)) as admission:
        admission.finish(Ending.FINISHED)
    with redis.Redis.from_url(server.url) as client:
        sweeper = Sweeper(client, grace_s=0.0, quiet_s=0.0)
        swept = 0
        async with asyncio.timeout(10):
            while swept < 2:
                swept += sweeper.sweep()
                await asyncio.sleep(0.05)
    await finish_settlements()
    assert state(server.url) == (0, [20, 0])

    def rows() -> list[LedgerEntry]:
        with redis.Redis.from_url(server.url) as client:
            writer = LedgerWriter(client)
            while writer.write_some(1):
                pass
        return list(LedgerEntry.objects.filter(request_id__startswith="held"))

    assert [(each.prompt_tokens, each.output_tokens, each.source) for each in await in_thread(rows)] == [
        (7, 3, "estimated")
    ] * 2


async def test_a_request_that_never_was_gives_everything_back(
    server: RedisServer, header: str, facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had its place, then nothing known of its key could be trusted any more, and the key is gone."""
    principal = await authenticate(header)
    async with gate(principal, facts("first", max_tokens=13)) as admission:
        admission.finish(Ending.FINISHED)
    await finish_settlements()

    async def gone(_: object) -> None:
        raise Denied(Code.INVALID_API_KEY, "gone")

    monkeypatch.setattr(admitting, "reload_principal", gone)
    with pytest.raises(Denied):
        async with gate(replace(principal, generation=-1), facts("second", max_tokens=13)):
            pytest.fail("admitted")
    await finish_settlements()
    assert state(server.url) == (0, [0, 0])
