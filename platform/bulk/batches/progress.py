"""How far a batch is, and how fast it goes."""

from datetime import datetime

from bulk.models import Batch


def percent_done(batch: Batch) -> float:
    """0 to 100."""
    if not batch.num_total:
        return 0.0 if batch.is_open else 100.0
    return 100.0 * (batch.num_completed + batch.num_failed) / batch.num_total


def lines_per_second(batch: Batch, now: datetime) -> float:
    """Since it began, until it ended."""
    if batch.in_progress_at is None:
        return 0.0
    ended = [batch.finalizing_at, batch.cancelling_at, batch.completed_at]
    until = min((at for at in ended if at is not None), default=now)
    seconds = (until - batch.in_progress_at).total_seconds()
    return (batch.num_completed + batch.num_failed) / seconds if seconds > 0 else 0.0
