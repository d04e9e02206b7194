"""Output and error files: each line once, in the order of the input, a page of lines at a time in memory."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bulk.execution.line_results import unfinished
from bulk.files.services import expiry, scratch_folder
from bulk.files.storage import discard, keep
from bulk.models import UNFINISHED, Batch, BatchStatus, File, Line, LineState, Purpose

LINES_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Assembled:
    storage_name: str
    num_bytes: int


def assemble_outputs(batch: Batch, renew: Callable[[], None]) -> Assembled | None:
    """None where there is no line for it. Raises StorageUnavailable, and what `renew` raises."""
    return _stored(batch, "output", _results(batch, (LineState.ANSWERED,), batch.status, renew))


def assemble_errors(batch: Batch, ending: BatchStatus, renew: Callable[[], None]) -> Assembled | None:
    """Failed lines, and those that were not finished. Raises as above."""
    return _stored(batch, "errors", _results(batch, (LineState.FAILED, *UNFINISHED), ending, renew))


def file_row(batch: Batch, assembled: Assembled | None, kind: str) -> File | None:
    if assembled is None:
        return None
    return File.objects.create(
        tenant_id=batch.tenant_id,
        key_id=batch.api_key.public_id,
        filename=f"{batch.public_id}_{kind}.jsonl",
        purpose=Purpose.BATCH_OUTPUT,
        num_bytes=assembled.num_bytes,
        storage_name=assembled.storage_name,
        expires_at=expiry(batch.output_expires_after_s),
    )


def _results(
    batch: Batch, states: tuple[LineState, ...], ending: str, renew: Callable[[], None]
) -> Iterator[str]:
    lines = Line.objects.filter(batch=batch, state__in=states).order_by("number")
    last = 0
    while page := list(lines.filter(number__gt=last)[:LINES_AT_ONCE]):
        renew()
        for line in page:
            yield line.result or unfinished(batch, line.number, line.custom_id, BatchStatus(ending))
        last = page[-1].number


def _stored(batch: Batch, kind: str, results: Iterator[str]) -> Assembled | None:
    """Under a name that is always the same, so that a crash leaves nothing that nobody knows of."""
    with tempfile.TemporaryFile(dir=scratch_folder()) as content:
        for result in results:
            content.write(result.encode() + b"\n")
        num_bytes = content.tell()
        if not num_bytes:
            return None
        content.seek(0)
        name = f"{batch.tenant_id}/{batch.public_id}-{kind}"
        discard(name)
        return Assembled(keep(content, name), num_bytes)
