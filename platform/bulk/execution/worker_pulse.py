"""What a worker says of itself every two seconds, for a watch that must tell a busy one from a silent one.

Celery's worker can lose its place at the broker in a reconnect: it lives, answers pings and takes no tasks.
"""

import os
import time
from typing import Any

import msgspec
import structlog
from celery import bootsteps
from celery.worker import state
from redis.exceptions import RedisError

from tenants.shards import blocking_redis

log = structlog.get_logger(__name__)

EVERY_S = 2.0
KEPT_S = 120


def pulse_key(pid: int) -> str:
    return f"octavo:bulk:pulse:{pid}"


class WorkerPulse(bootsteps.StartStopStep):
    """A step of the consumer: its timer stands still when the consumer does."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, consumer: Any, **kwargs: Any) -> None:
        super().__init__(consumer, **kwargs)
        self._timer: Any = None

    def start(self, consumer: Any) -> None:
        self._timer = consumer.timer.call_repeatedly(EVERY_S, tell, (consumer.pool.num_processes,))

    def stop(self, consumer: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()


def tell(num_places: int) -> None:
    pulse = {
        "at": time.time(),
        "num_places": num_places,
        "num_busy": len(state.active_requests),
        "num_taken": sum(state.total_count.values()),
    }
    try:
        blocking_redis().set(pulse_key(os.getpid()), msgspec.json.encode(pulse), ex=KEPT_S)
    except (RedisError, OSError) as error:
        log.warning("pulse_not_told", error=str(error))
