"""Batches in the database without a worker: their lines end as a test says."""

import io
import json
from datetime import timedelta

from django.utils import timezone

from api_keys.models import ApiKey
from bulk.batches.finishing import finish_batch
from bulk.batches.validation import validate_batch
from bulk.execution.claiming import claim_chunk, end_claim
from bulk.execution.keeping import Answer, write_answers
from bulk.execution.line_results import answered
from bulk.files.services import store_file
from bulk.models import Batch, LineState, Purpose


def input_line(number: int) -> bytes:
    body = {"model": "m", "messages": []}
    whole = {"custom_id": f"r{number}", "method": "POST", "url": "/v1/chat/completions", "body": body}
    return json.dumps(whole).encode() + b"\n"


def new_batch(key: ApiKey, num_lines: int) -> Batch:
    """Not validated yet."""
    content = io.BytesIO(b"".join(input_line(number) for number in range(num_lines)))
    return Batch.objects.create(
        tenant=key.tenant,
        api_key=key,
        endpoint="/v1/chat/completions",
        completion_window="24h",
        input_file=store_file(key.tenant_id, key.public_id, "in.jsonl", Purpose.BATCH, content),
        expires_at=timezone.now() + timedelta(hours=24),
    )


def running_batch(key: ApiKey, num_lines: int) -> Batch:
    batch = new_batch(key, num_lines)
    assert validate_batch(batch.pk)
    batch.refresh_from_db()
    return batch


def end_lines(batch: Batch, *states: LineState) -> None:
    """The first lines of the first chunk end so; the others are given back."""
    claim = claim_chunk(batch.chunks.get(number=0).pk)
    assert claim is not None
    for line, state in zip(claim.lines, states, strict=False):
        result = answered(batch.public_id, line.number, line.custom_id, "req", {})
        write_answers([Answer(batch.pk, line.pk, claim.fence, state, result)])
    end_claim(claim, None)


def ended_batch(key: ApiKey, *states: LineState) -> Batch:
    batch = running_batch(key, len(states))
    end_lines(batch, *states)
    assert finish_batch(batch.pk)
    batch.refresh_from_db()
    return batch
