"""The Celery application: bulk work and its clock. `celery -A control_plane.celery worker | beat`.

Delivery is at least once, by design of everything that runs here: leases and fences in the database make the
effects happen once.
"""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "control_plane.settings")

from celery import Celery
from django.conf import settings

QUEUE = "bulk"
KEY_PREFIX = "octavo:celery:"
SWEEP_EVERY_S = 5.0
PURGE_EVERY_S = 600.0


def broker_url(url: str) -> str:
    """As the transport names sockets: unix:///path becomes redis+socket:///path."""
    return f"redis+socket://{url.removeprefix('unix://')}" if url.startswith("unix://") else url


def _periodic(task: str, every_s: float) -> dict[str, Any]:
    """What nobody took in time is dropped: the next one does the same."""
    return {"task": task, "schedule": every_s, "options": {"expires": every_s}}


app = Celery("octavo")
app.conf.update(
    broker_url=broker_url(settings.OCTAVO_BROKER_URL),
    broker_transport_options={
        "global_keyprefix": KEY_PREFIX,
        "visibility_timeout": settings.OCTAVO_BROKER_VISIBILITY_SECONDS,
        "unacked_restore_throttle": 1,  # by default only each tenth look is one
        "unacked_mutex_expire": 10,  # who dies while looking keeps the others from it for so many seconds
        "socket_timeout": 10.0,
        "socket_connect_timeout": 2.0,
        "socket_keepalive": True,
        "health_check_interval": 10,
    },
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    task_default_queue=QUEUE,
    task_serializer="json",
    accept_content=["json"],
    task_ignore_result=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    worker_send_task_events=False,
    enable_utc=True,
    beat_scheduler="celery.beat:Scheduler",
    beat_max_loop_interval=SWEEP_EVERY_S,
    beat_schedule={
        "sweep": _periodic("bulk.sweep", SWEEP_EVERY_S),
        "purge": _periodic("bulk.purge", PURGE_EVERY_S),
    },
)
