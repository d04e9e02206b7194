"""How batches end: completed, expired, cancelled; and what the ledger lacks of them."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from api_keys.models import ApiKey
from batch_rows import end_lines
from bulk.batches import validation
from bulk.batches.charging import AGAIN, missing_charges
from bulk.batches.finishing import finish_batch
from bulk.batches.retrying import retry_failed
from bulk.batches.services import cancel_batch
from bulk.batches.validation import validate_batch
from bulk.execution.claiming import Claim, claim_chunk
from bulk.execution.holding import take_hold
from bulk.execution.keeping import Answer, write_answers
from bulk.files.services import delete_file, purge_files
from bulk.files.storage import pieces
from bulk.models import Batch, BatchStatus, File, Line, LineState
from usage.models import Ending, LedgerEntry, Source


def claimed(batch: Batch) -> Claim:
    claim = claim_chunk(batch.chunks.get(number=0).pk)
    assert claim is not None
    return claim


def results(file: File | None) -> list[dict[str, Any]]:
    return [] if file is None else [json.loads(line) for line in b"".join(pieces(file)).splitlines()]


def ended(batch: Batch) -> tuple[list[str], list[tuple[str, str | None]]]:
    """Custom ids of the output file, and of the error file with their codes."""
    batch.refresh_from_db()
    output = [result["custom_id"] for result in results(batch.output_file)]
    errors = [(one["custom_id"], (one["error"] or {}).get("code")) for one in results(batch.error_file)]
    return output, errors


def test_a_batch_whose_lines_are_all_done_is_completed(key: ApiKey, make_batch: Any) -> None:
    batch = make_batch(key, 3)
    assert not finish_batch(batch.pk)
    end_lines(batch, LineState.ANSWERED, LineState.FAILED, LineState.ANSWERED)
    assert finish_batch(batch.pk)
    assert ended(batch) == (["r0", "r2"], [("r1", None)])
    assert batch.status == BatchStatus.COMPLETED
    assert not finish_batch(batch.pk)


def test_lines_that_were_not_begun_in_time_have_expired(key: ApiKey, make_batch: Any) -> None:
    batch = make_batch(key, 3)
    end_lines(batch, LineState.ANSWERED)
    Batch.objects.filter(pk=batch.pk).update(expires_at=timezone.now())
    assert finish_batch(batch.pk)
    assert ended(batch) == (["r0"], [("r1", "batch_expired"), ("r2", "batch_expired")])
    assert (batch.status, batch.num_completed, batch.num_failed) == (BatchStatus.EXPIRED, 1, 2)


def test_nothing_is_put_together_while_a_worker_may_still_answer(key: ApiKey, make_batch: Any) -> None:
    batch = make_batch(key, 2)
    claim = claimed(batch)
    cancel_batch(batch)
    assert not finish_batch(batch.pk)
    Line.objects.filter(batch=batch).update(lease_until=timezone.now() - timedelta(seconds=1))
    assert finish_batch(batch.pk)
    late = Answer(batch.pk, claim.lines[0].pk, claim.fence, LineState.ANSWERED, "late")
    assert write_answers([late]) == [False]
    assert ended(batch) == ([], [("r0", "batch_cancelled"), ("r1", "batch_cancelled")])


def test_one_worker_at_a_time_puts_together(key: ApiKey, make_batch: Any) -> None:
    batch = make_batch(key, 1)
    end_lines(batch, LineState.ANSWERED)
    Batch.objects.filter(pk=batch.pk).update(status=BatchStatus.FINALIZING)
    assert take_hold(batch.pk, BatchStatus.FINALIZING)
    assert not finish_batch(batch.pk)


def test_a_validation_that_broke_off_begins_anew(key: ApiKey, make_batch: Any) -> None:
    batch = make_batch(key, 120)
    past = timezone.now() - timedelta(seconds=1)
    Batch.objects.filter(pk=batch.pk).update(status=BatchStatus.VALIDATING, held_until=past)
    assert validate_batch(batch.pk)
    assert Line.objects.filter(batch=batch).count() == 120


def test_a_batch_cancelled_before_it_began_has_no_files(key: ApiKey, make_batch: Any) -> None:
    batch = cancel_batch(make_batch(key, 2, is_valid=False))
    assert finish_batch(batch.pk)
    assert ended(batch) == ([], [])
    assert batch.status == BatchStatus.CANCELLED


def test_a_batch_cancelled_while_it_is_validated_ends_without_waiting_for_a_lease(
    key: ApiKey, make_batch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = make_batch(key, 2, is_valid=False)
    monkeypatch.setattr(validation, "drop_lines", lambda _: cancel_batch(batch))
    assert not validate_batch(batch.pk)
    assert finish_batch(batch.pk)
    batch.refresh_from_db()
    assert batch.status == BatchStatus.CANCELLED


def test_failed_lines_are_run_again_in_a_batch_of_their_own(key: ApiKey, make_batch: Any) -> None:
    batch = make_batch(key, 4)
    end_lines(batch, *[LineState.ANSWERED, LineState.FAILED] * 2)
    finish_batch(batch.pk)
    batch.refresh_from_db()
    again = retry_failed(batch, actor="user:olive")
    assert validate_batch(again.pk)
    lines = Line.objects.filter(batch=again).order_by("number")
    assert [line.custom_id for line in lines] == ["r1", "r3"]


def test_what_is_deleted_is_gone_when_nobody_reads_it_any_more(key: ApiKey, make_batch: Any) -> None:
    batch = make_batch(key, 1)
    delete_file(batch.input_file)
    assert purge_files() == 0, "an open batch reads it"
    assert b"".join(pieces(batch.input_file))
    end_lines(batch, LineState.ANSWERED)
    finish_batch(batch.pk)
    assert purge_files() == 1
    batch.input_file.refresh_from_db()
    assert batch.input_file.storage_name == ""


def charge(key: ApiKey, number: int, tokens: int) -> dict[str, str]:
    return {
        "request_id": f"req_{number}",
        "tenant_id": str(key.tenant_id),
        "key_id": key.public_id,
        "model": "m",
        "prompt_tokens": str(tokens),
        "output_tokens": "0",
    }


def in_ledger(row: dict[str, str], tokens: int, name: str = "") -> None:
    now = timezone.now()
    LedgerEntry.objects.create(
        request_id=name or row["request_id"],
        tenant_id=int(row["tenant_id"]),
        key_id=row["key_id"],
        prompt_tokens=tokens,
        admitted_at=now,
        finished_at=now,
        ending=Ending.FINISHED,
        source=Source.AUTHORITATIVE,
    )


def test_what_the_ledger_lacks_is_found_once(key: ApiKey, make_batch: Any) -> None:
    batch = make_batch(key, 4)
    rows = [charge(key, number, 5) for number in range(4)]
    for line, row in zip(Line.objects.filter(batch=batch).order_by("number"), rows, strict=True):
        Line.objects.filter(pk=line.pk).update(charge=json.dumps(row))
    in_ledger(rows[0], 5)
    in_ledger(rows[1], 0)
    in_ledger(rows[2], 0)
    in_ledger(rows[2], 5, rows[2]["request_id"] + AGAIN)
    assert [row["request_id"] for row in missing_charges(batch.pk)] == ["req_1" + AGAIN, "req_3"]
