"""A short run of `make chaos-quota`: everything dies once under load, and the books agree."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest

from chaos import quota
from octavo_stack import ROOT
from servers_of_tests import wait_until

GAP_S, AWAY_S = 2.2, 2.0
"""A fault has healed when what Redis answered for is in its file: two seconds at worst."""


@pytest.mark.timeout(600)
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
    assert chaos.watch.num_looks > 3 and verdict.num_rows > quota.ENOUGH_ADMITTED


@pytest.fixture
def folder() -> Iterator[Path]:
    """For what a killed run leaves lying about: short, for its sockets, and open to PostgreSQL's user."""
    with tempfile.TemporaryDirectory(prefix="oct-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest.mark.timeout(240)
def test_a_run_that_is_killed_leaves_no_process_behind(smollm2_dir: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "chaos.quota", "--database", "postgres", "--model-dir", str(smollm2_dir)]
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'platform'}{os.pathsep}{ROOT / 'tests'}",
        "OCTAVO_MODEL_DIR": str(smollm2_dir),
        "TMPDIR": str(folder),
    }
    run = subprocess.Popen(command, cwd=ROOT, env=environment)
    seen: dict[int, psutil.Process] = {}

    def has_all() -> bool:
        """Redis, PostgreSQL, two engines, ledger writer, two gateways, and what these have started."""
        seen.update((one.pid, one) for one in psutil.Process(run.pid).children(recursive=True))
        return len(psutil.Process(run.pid).children()) >= 7

    try:
        wait_until(has_all, "a whole world", 90)
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait(10)
    _, left = psutil.wait_procs(list(seen.values()), timeout=30)
    assert left == []
