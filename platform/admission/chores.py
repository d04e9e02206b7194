"""Work beside the requests, done in turn by one process until it is told to stop."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from django.db import DatabaseError, InterfaceError, close_old_connections
from redis.exceptions import RedisError

log = structlog.get_logger(__name__)

PAUSE_S = 1.0


@dataclass(slots=True)
class Chore:
    name: str
    interval_s: float
    work: Callable[[], object]
    due_at: float = 0.0


def run_chores(chores: list[Chore], stop: threading.Event) -> None:
    """An outage of Redis or database fails a chore, to be tried again; anything else ends the process."""
    while not stop.is_set():
        for chore in chores:
            if chore.due_at <= time.monotonic() and not stop.is_set():
                _run(chore, stop)
        wait_s = min(chore.due_at for chore in chores) - time.monotonic()
        if wait_s > 0:
            stop.wait(wait_s)


def _run(chore: Chore, stop: threading.Event) -> None:
    try:
        chore.work()
        pause_s = chore.interval_s
    except (RedisError, OSError, DatabaseError, InterfaceError) as error:
        log.warning("chore_failed", chore=chore.name, error=str(error))
        pause_s = max(chore.interval_s, PAUSE_S)
    finally:
        close_old_connections()
    chore.due_at = time.monotonic() + pause_s
