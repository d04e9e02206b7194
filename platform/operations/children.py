"""The table of processes that one supervisor runs: a new kind of process is a new row here."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from operations.home import Home
from operations.redis_server import redis_command

NICE_BESIDE_THE_ENGINE = 10
"""The engine's matrix threads lose a third of their speed to an equal neighbour, little to a nicer one."""
DEFAULT_BULK_CHUNKS = 2
_CELERY = (sys.executable, "-m", "celery", "-A", "control_plane.celery")


@dataclass(frozen=True)
class ChildSpec:
    name: str
    command: tuple[str, ...]
    nice: int = 0
    stop_ceiling_s: float = 10.0
    """Between SIGTERM and SIGKILL."""


def redis_child(server: Path, home: Home) -> ChildSpec:
    command = redis_command(server, home.redis_socket, home.redis_data)
    return ChildSpec("redis", tuple(command), nice=NICE_BESIDE_THE_ENGINE)


def engine_child(home: Home) -> ChildSpec:
    """One replica. Model, Redis and everything else it reads from OCTAVO_* variables."""
    address = f"unix:{home.sockets / 'engine.sock'}"
    return ChildSpec("engine", (sys.executable, "-m", "inference_engine", "--address", address))


def ledger_child() -> ChildSpec:
    command = (sys.executable, "-m", "django", "ledger_writer")
    return ChildSpec("ledger", command, nice=NICE_BESIDE_THE_ENGINE)


def gateway_child(host: str, port: int) -> ChildSpec:
    """Gateway and console on one port."""
    command = (sys.executable, "-m", "gateway.server", "--host", host, "--port", str(port))
    return ChildSpec("gateway", command, nice=NICE_BESIDE_THE_ENGINE)


def worker_child(environment: Mapping[str, str]) -> ChildSpec:
    """Files and batches. A process for each chunk of lines that runs at once, one for a chunk that begins as
    others end, and one for everything else."""
    num_processes = int(environment.get("OCTAVO_BULK_CHUNKS") or DEFAULT_BULK_CHUNKS) + 2
    command = (*_CELERY, "worker", "--include", "bulk.tasks", "--concurrency", str(num_processes))
    log_level = environment.get("OCTAVO_LOG_LEVEL") or "WARNING"  # at INFO each task is two lines
    quiet = ("--without-gossip", "--without-mingle", "--loglevel", log_level)
    return ChildSpec("worker", (*command, *quiet), nice=NICE_BESIDE_THE_ENGINE)


def beat_child() -> ChildSpec:
    """The worker's clock."""
    return ChildSpec("beat", (*_CELERY, "beat", "--loglevel", "WARNING"), nice=NICE_BESIDE_THE_ENGINE)


def database_step() -> ChildSpec:
    """Runs to its end before the ledger writer and the gateway start."""
    return ChildSpec("database", (sys.executable, "-m", "operations.prepare_database"))


def first_run_step() -> ChildSpec:
    return ChildSpec("first-run", (sys.executable, "-m", "operations.first_run"))


def first_answer_step(url: str, model: str) -> ChildSpec:
    """Prints to the terminal; expects the API key on its standard input."""
    return ChildSpec("first-answer", (sys.executable, "-m", "operations.first_answer", url, model))
