"""What beat has done every few seconds: whatever was lost on the way is found again in the database."""

import structlog
from django.db.models import Q
from django.utils import timezone

from bulk.announcing import announce_finish, announce_validation
from bulk.batches.charging import close_charges, keys_of, missing_charges, uncharged_batches
from bulk.batches.selectors import due_to_end
from bulk.execution.dispatching import dispatch
from bulk.execution.event_loop import loop_thread
from bulk.models import Batch, BatchStatus
from quotas.reservations import settle
from tenants.shards import blocking_redis

log = structlog.get_logger(__name__)

SWEPT_KEY = "octavo:bulk:swept_at"
"""When a sweep last ran, in Unix seconds: for the supervisor's watch."""


def sweep() -> None:
    blocking_redis().set(SWEPT_KEY, str(timezone.now().timestamp()))
    announce_again()
    dispatch()
    settle_again()


def announce_again() -> None:
    """Batches that are due for something that nobody is at."""
    is_free = Q(held_until=None) | Q(held_until__lt=timezone.now())
    for batch in Batch.objects.filter(is_free, status=BatchStatus.VALIDATING):
        announce = announce_finish if batch.expires_at <= timezone.now() else announce_validation
        announce(batch.pk)
    for batch_pk in due_to_end().filter(is_free).values_list("pk", flat=True):
        announce_finish(batch_pk)


def settle_again() -> None:
    for batch_pk in uncharged_batches():
        missing = list(missing_charges(batch_pk))
        for row in missing:
            log.warning("charge_settled_again", request_id=row["request_id"])
            loop_thread().run(settle(keys_of(row), row))
        if not missing:
            close_charges(batch_pk)
