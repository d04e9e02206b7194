"""Tells the workers that there is something to do. A word that is lost costs time, never work: the sweep
finds in the database whatever nobody was told of."""

import structlog
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from control_plane.celery import app

log = structlog.get_logger(__name__)

VALIDATE, FINISH, RUN_CHUNK = "bulk.validate", "bulk.finish", "bulk.run_chunk"


def announce_validation(batch_pk: int) -> bool:
    return _announce(VALIDATE, batch_pk)


def announce_finish(batch_pk: int) -> bool:
    return _announce(FINISH, batch_pk)


def announce_chunk(chunk_pk: int) -> bool:
    return _announce(RUN_CHUNK, chunk_pk)


def _announce(task: str, number: int) -> bool:
    try:
        app.send_task(task, args=[number], retry=False)
    except (OperationalError, RedisError, OSError) as error:
        log.warning("broker_unreachable", task=task, error=str(error))
        return False
    return True
