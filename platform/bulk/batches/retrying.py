"""The failed lines of a batch once more: as a batch of its own, of the same key, with a file of its own."""

import tempfile
from collections.abc import Iterator
from typing import IO

import msgspec
from django.utils import timezone

from bulk.batches.input_lines import raw_lines, read_line
from bulk.batches.services import enter_batch
from bulk.files.services import scratch_folder, store_file
from bulk.files.storage import local_path
from bulk.limits import COMPLETION_WINDOWS
from bulk.models import Batch, Purpose
from inference_engine.contract.codes import Code
from tenants.errors import Denied


class Named(msgspec.Struct):
    custom_id: str


def retry_failed(batch: Batch, *, actor: str = "system") -> Batch:
    """Raises Denied (INVALID_REQUEST where there is nothing to retry), StorageUnavailable."""
    if batch.is_open or batch.error_file is None:
        raise Denied(Code.INVALID_REQUEST, "There are no failed lines, or the batch has not ended.")
    if not (batch.error_file.storage_name and batch.input_file.storage_name):
        raise Denied(Code.INVALID_REQUEST, "The batch's files are no longer there.")
    with tempfile.TemporaryFile(dir=scratch_folder()) as chosen:
        _copy_failed(batch, chosen)
        name = f"retry_of_{batch.public_id}.jsonl"
        key_id = batch.api_key.public_id
        file = store_file(batch.tenant_id, key_id, name, Purpose.BATCH, chosen, actor=actor)
    again = Batch(
        tenant=batch.tenant,
        api_key=batch.api_key,
        address=batch.address,
        endpoint=batch.endpoint,
        completion_window=batch.completion_window,
        metadata=batch.metadata,
        input_file=file,
        output_expires_after_s=batch.output_expires_after_s,
        expires_at=timezone.now() + COMPLETION_WINDOWS[batch.completion_window],
    )
    return enter_batch(again, actor=actor)


def _copy_failed(batch: Batch, chosen: IO[bytes]) -> None:
    assert batch.error_file is not None
    with open(local_path(batch.error_file), "rb") as errors:
        failed = set(_custom_ids(errors))
    with open(local_path(batch.input_file), "rb") as lines:
        for line in raw_lines(lines):
            if line.content is not None and read_line(line.content).custom_id in failed:
                chosen.write(line.content + b"\n")


def _custom_ids(errors: IO[bytes]) -> Iterator[str]:
    decoder = msgspec.json.Decoder(Named)
    return (decoder.decode(line).custom_id for line in errors)
