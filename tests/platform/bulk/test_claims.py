"""Claims, leases and fences: whatever is delivered twice or comes late, a line is answered once."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from api_keys.models import ApiKey
from bulk.execution.claiming import Claim, claim_chunk, close_chunk, end_claim, renew_claim
from bulk.execution.keeping import Answer, write_answers
from bulk.models import Batch, BatchStatus, Line, LineState


def lapse(batch: Batch) -> None:
    """Every lease of the batch has ended."""
    past = timezone.now() - timedelta(seconds=1)
    Line.objects.filter(batch=batch, lease_until__isnull=False).update(lease_until=past)
    batch.chunks.filter(taken_until__isnull=False).update(taken_until=past)


def answers(claim: Claim, text: str, numbers: slice = slice(None)) -> list[Answer]:
    chosen = claim.lines[numbers]
    return [
        Answer(claim.batch_pk, one.pk, claim.fence, LineState.ANSWERED, text, "{}", "m", 3, 1, 2)
        for one in chosen
    ]


def claimed(batch: Batch, number: int = 0) -> Claim:
    claim = claim_chunk(batch.chunks.get(number=number).pk)
    assert claim is not None
    return claim


def test_a_chunk_has_at_most_a_hundred_lines_in_order(key: ApiKey, make_batch: Any) -> None:
    batch = make_batch(key, 250)
    assert batch.num_total == 250
    sizes = [chunk.lines.count() for chunk in batch.chunks.order_by("number")]
    assert sizes == [100, 100, 50]
    assert [one.number for one in claimed(batch, 1).lines] == list(range(101, 201))


def test_a_task_that_comes_twice_finds_nothing_to_do(key: ApiKey, make_batch: Any) -> None:
    batch = make_batch(key, 10)
    claim = claimed(batch)
    assert claim_chunk(claim.chunk_pk) is None
    assert write_answers(answers(claim, "one")) == [True] * 10
    end_claim(claim, None)
    assert batch.chunks.get().is_done
    assert claim_chunk(claim.chunk_pk) is None


def test_who_was_given_up_can_write_no_more(key: ApiKey, make_batch: Any) -> None:
    batch = make_batch(key, 10)
    first = claimed(batch)
    assert write_answers(answers(first, "first", slice(4))) == [True] * 4
    lapse(batch)
    second = claimed(batch)
    assert second.fence > first.fence
    assert [one.number for one in second.lines] == [5, 6, 7, 8, 9, 10]
    assert write_answers(answers(first, "late")) == [False] * 10
    assert write_answers(answers(second, "second")) == [True] * 6
    assert write_answers(answers(second, "again")) == [False] * 6
    kept = Line.objects.filter(batch=batch).order_by("number").values_list("result", flat=True)
    assert list(kept) == ["first"] * 4 + ["second"] * 6
    batch.refresh_from_db()
    counts = (batch.num_completed, batch.num_failed, batch.prompt_tokens, batch.output_tokens)
    assert counts == (10, 0, 30, 20)
    assert batch.model == "m"


def test_a_claim_that_is_renewed_is_nobody_elses(key: ApiKey, make_batch: Any) -> None:
    batch = make_batch(key, 10)
    claim = claimed(batch)
    lapse(batch)
    assert renew_claim(claim)
    assert claim_chunk(claim.chunk_pk) is None


def test_what_was_not_finished_is_given_back(key: ApiKey, make_batch: Any) -> None:
    batch = make_batch(key, 10)
    claim = claimed(batch)
    write_answers(answers(claim, "one", slice(3)))
    end_claim(claim, None)
    assert not batch.chunks.get().is_done
    assert len(claimed(batch).lines) == 7


def test_a_claim_on_a_cancelled_batch_is_told_to_stop(key: ApiKey, make_batch: Any) -> None:
    batch = make_batch(key, 10)
    claim = claimed(batch)
    Batch.objects.filter(pk=batch.pk).update(status=BatchStatus.CANCELLING)
    assert not renew_claim(claim)
    assert write_answers(answers(claim, "kept", slice(1))) == [True]
    end_claim(claim, None)
    assert claim_chunk(claim.chunk_pk) is None


def test_a_chunk_whose_worker_died_after_its_last_answer_is_done(key: ApiKey, make_batch: Any) -> None:
    batch = make_batch(key, 3)
    claim = claimed(batch)
    assert not close_chunk(claim.chunk_pk)
    write_answers(answers(claim, "one"))
    assert claim_chunk(claim.chunk_pk) is None
    assert close_chunk(claim.chunk_pk)
    assert batch.chunks.get().is_done
