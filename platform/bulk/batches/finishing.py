"""The end of a batch, whichever it is: its files are put together once nobody works on it any more."""

import structlog
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from audit.services import record
from bulk.batches.result_files import assemble_errors, assemble_outputs, file_row
from bulk.batches.services import subject
from bulk.batches.validation import drop_lines
from bulk.execution.holding import Hold, HoldLost, draw_fence, take_hold
from bulk.models import UNFINISHED, Batch, BatchStatus, Chunk, Line, LineState

log = structlog.get_logger(__name__)

_ENDED_AT = {
    BatchStatus.COMPLETED: "completed_at",
    BatchStatus.EXPIRED: "expired_at",
    BatchStatus.CANCELLED: "cancelled_at",
}


def finish_batch(batch_pk: int) -> bool:
    """Whether it has ended now. Again after a crash, it begins anew."""
    begin_finalizing(batch_pk)
    for status in (BatchStatus.FINALIZING, BatchStatus.CANCELLING):
        hold = take_hold(batch_pk, status)
        if hold is None:
            continue
        try:
            return _finish(hold)
        except HoldLost:
            log.info("finalizing_given_up", batch=batch_pk)
    return False


def begin_finalizing(batch_pk: int) -> None:
    """If all is done, or the time is up; one that was never begun expires as it is."""
    now = timezone.now()
    batch = Batch.objects.filter(pk=batch_pk)
    is_open = Chunk.objects.filter(batch_id=batch_pk, is_done=False).exists()
    due = Q(expires_at__lte=now) if is_open else Q()
    batch.filter(due, status=BatchStatus.IN_PROGRESS).update(status=BatchStatus.FINALIZING, finalizing_at=now)
    late = batch.filter(status=BatchStatus.VALIDATING, expires_at__lte=now)
    late.update(status=BatchStatus.FINALIZING, finalizing_at=now)


def _finish(hold: Hold) -> bool:
    if not _fence_off(hold):
        hold.change(held_until=None)  # somebody is at its lines: they stop soon, or their leases end
        return False
    batch = Batch.objects.select_related("tenant", "api_key").get(pk=hold.batch_pk)
    if batch.in_progress_at is None:
        drop_lines(batch)  # of a validation that was interrupted
    num_unfinished = Line.objects.filter(batch=batch, state__in=UNFINISHED).count()
    ending = _ending(batch, num_unfinished)
    outputs = assemble_outputs(batch, hold.renew)
    errors = assemble_errors(batch, ending, hold.renew)
    with transaction.atomic():
        ended: dict[str, object] = {"status": ending, _ENDED_AT[ending]: timezone.now(), "held_until": None}
        hold.change(
            **ended,
            output_file=file_row(batch, outputs, "output"),
            error_file=file_row(batch, errors, "errors"),
            num_failed=F("num_failed") + num_unfinished,
        )
        record("system", "batch.end", subject(batch), {"status": str(ending)}, tenant_id=batch.tenant_id)
    return True


def _ending(batch: Batch, num_unfinished: int) -> BatchStatus:
    if batch.status == BatchStatus.CANCELLING:
        return BatchStatus.CANCELLED
    is_short = num_unfinished or not batch.in_progress_at
    return BatchStatus.EXPIRED if is_short else BatchStatus.COMPLETED


@transaction.atomic
def _fence_off(hold: Hold) -> bool:
    """Whether nobody can add an answer any more."""
    claimed = Line.objects.filter(batch_id=hold.batch_pk, state=LineState.CLAIMED)
    if claimed.filter(lease_until__gte=timezone.now()).exists():
        return False
    fence = draw_fence(hold.batch_pk)
    claimed.update(state=LineState.WAITING, fence=fence, lease_until=None)
    return True
