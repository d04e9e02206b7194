"""A short run of `make chaos-quota`: everything dies once under load, and the books agree."""

import asyncio
from dataclasses import asdict
from pathlib import Path

import pytest

from chaos import quota

GAP_S, AWAY_S = 2.2, 2.0
"""A fault has healed when what Redis answered for is in its file: two seconds at worst."""


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("database", "faults"),
    [
        ("postgres", [quota.kill_gateway, quota.kill_redis, quota.kill_ledger_writer, quota.database_away]),
        ("sqlite", [quota.kill_engine, quota.kill_database, quota.kill_redis]),
    ],
)
def test_no_fault_costs_a_row_or_lets_anybody_beyond_a_limit(
    smollm2_dir: Path, redis_binary: Path, database: str, faults: list[quota.Fault]
) -> None:
    verdict, chaos = asyncio.run(quota.run_round(database, smollm2_dir, faults, GAP_S, AWAY_S))
    assert verdict.is_clean, asdict(verdict)
    assert chaos.failed_while_away == []
    assert chaos.watch.num_looks > 3 and verdict.num_rows > 100
    assert {"rate_limit_exceeded", "concurrency_limit_exceeded"} <= {one.code for one in chaos.load.answers}
