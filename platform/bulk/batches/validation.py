"""From a file to lines that can be run, or to the list of what is wrong with it."""

from collections.abc import Iterator
from itertools import islice

import structlog
from django.db import transaction
from django.utils import timezone

from bulk.batches.checking import GoodLine, InputCheck
from bulk.execution.holding import Hold, HoldLost, take_hold
from bulk.files.storage import local_path
from bulk.limits import LINES_PER_CHUNK
from bulk.models import Batch, BatchStatus, Chunk, Line

log = structlog.get_logger(__name__)

CHUNKS_AT_ONCE = 10
"""In one transaction: long enough to be quick, short enough that other writers don't wait."""


def validate_batch(batch_pk: int) -> bool:
    """Whether there is something to run now. Again after a crash, it begins anew."""
    hold = take_hold(batch_pk, BatchStatus.VALIDATING)
    if hold is None:
        return False
    try:
        return _validate(hold)
    except HoldLost:
        hold.give_up()
        log.info("validation_given_up", batch=batch_pk)
        return False


def _validate(hold: Hold) -> bool:
    batch = Batch.objects.select_related("input_file").get(pk=hold.batch_pk)
    drop_lines(batch)
    check = InputCheck(batch.endpoint)
    with open(local_path(batch.input_file), "rb") as content:
        num_lines = _take_in(hold, check, check.good_lines(content))
    if check.errors:
        drop_lines(batch)
        failed = {"status": BatchStatus.FAILED, "failed_at": timezone.now(), "errors": check.errors}
        hold.change(**failed, held_until=None)
        return False
    started = {"status": BatchStatus.IN_PROGRESS, "in_progress_at": timezone.now()}
    hold.change(**started, num_total=num_lines, held_until=None)
    return True


def _take_in(hold: Hold, check: InputCheck, lines: Iterator[GoodLine]) -> int:
    """Once something is wrong the rest is only read."""
    number = num_lines = 0
    while group := list(islice(lines, CHUNKS_AT_ONCE * LINES_PER_CHUNK)):
        with transaction.atomic():
            hold.renew()
            if not check.errors:
                number = _insert(hold.batch_pk, number, group)
        num_lines += len(group)
    return num_lines


def _insert(batch_pk: int, number: int, lines: list[GoodLine]) -> int:
    """The number of the next chunk."""
    groups = [lines[start : start + LINES_PER_CHUNK] for start in range(0, len(lines), LINES_PER_CHUNK)]
    chunks = Chunk.objects.bulk_create(
        Chunk(batch_id=batch_pk, number=number + index) for index in range(len(groups))
    )
    Line.objects.bulk_create(
        Line(batch_id=batch_pk, chunk=chunk, **line._asdict())
        for chunk, group in zip(chunks, groups, strict=True)
        for line in group
    )
    return number + len(groups)


def drop_lines(batch: Batch) -> None:
    """A piece at a time, so that other writers don't wait."""
    while numbers := list(batch.chunks.values_list("pk", flat=True)[:CHUNKS_AT_ONCE]):
        Chunk.objects.filter(pk__in=numbers).delete()
