"""What a worker's death left unsettled is settled again, and then nothing is left of the batch's lines."""

import json
from datetime import timedelta

import pytest
import redis
from django.utils import timezone

from api_keys.models import ApiKey
from batch_rows import ended_batch
from bulk.models import Batch, Line, LineState
from bulk.sweeping import settle_again
from usage.ledger_writer import LedgerWriter
from usage.models import LedgerEntry


@pytest.fixture
def unsettled(store: redis.Redis, key_and_secret: tuple[ApiKey, str], stopped_loop: None) -> Batch:
    """A batch of one answer whose worker died before it could settle."""
    key = key_and_secret[0]
    batch = ended_batch(key, LineState.ANSWERED)
    now = str(timezone.now().timestamp())
    row = {
        "request_id": "req_lost",
        "tenant_id": str(key.tenant_id),
        "key_id": key.public_id,
        "model": "m",
        "prompt_tokens": "7",
        "output_tokens": "5",
        "admitted_at": now,
        "finished_at": now,
        "ending": "finished",
        "source": "authoritative",
    }
    Line.objects.filter(batch=batch).update(charge=json.dumps(row))
    Batch.objects.filter(pk=batch.pk).update(completed_at=timezone.now() - timedelta(minutes=1))
    return batch


def test_a_lost_settlement_is_sent_once_and_the_lines_go(unsettled: Batch, store: redis.Redis) -> None:
    writer = LedgerWriter(store)
    for _ in range(3):
        settle_again()
        while writer.write_some(1):
            pass
    billed = LedgerEntry.objects.values_list("request_id", "prompt_tokens", "output_tokens")
    assert list(billed) == [("req_lost", 7, 5)]
    unsettled.refresh_from_db()
    assert unsettled.charged_at is not None
    assert not Line.objects.filter(batch=unsettled).exists()
