"""Which chunks are worked on: no more than there are places, and each tenant its share of them."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from api_keys.models import ApiKey
from api_keys.services import create_key
from bulk.announcing import RUN_CHUNK
from bulk.execution.claiming import claim_chunk, end_claim
from bulk.execution.dispatching import dispatch
from bulk.models import Batch, BatchStatus, Chunk, Line, LineState
from tenants.services import create_tenant

Told = list[tuple[str, int]]


def chunks_of(told: Told) -> list[tuple[str, int]]:
    """Tenant and number of the chunks that were announced."""
    found = [
        Chunk.objects.select_related("batch__tenant").get(pk=pk) for task, pk in told if task == RUN_CHUNK
    ]
    return [(chunk.batch.tenant.name, chunk.number) for chunk in found]


def finish(chunk_pk: int) -> None:
    claim = claim_chunk(chunk_pk)
    assert claim is not None
    Line.objects.filter(chunk_id=chunk_pk).update(state=LineState.ANSWERED)
    end_claim(claim, None)


def test_places_are_filled_once(key: ApiKey, make_batch: Any, announced: Told, settings: Any) -> None:
    settings.OCTAVO_BULK_CHUNKS = 2
    make_batch(key, 500)
    assert dispatch() == 2
    assert dispatch() == 0
    finish(announced[0][1])
    assert dispatch() == 1
    assert chunks_of(announced) == [("Acme", 0), ("Acme", 1), ("Acme", 2)]


def answer(chunk_pk: int, count: int) -> None:
    lines = Line.objects.filter(chunk_id=chunk_pk).exclude(state=LineState.ANSWERED)
    lines.filter(pk__in=list(lines.values_list("pk", flat=True)[:count])).update(state=LineState.ANSWERED)


def test_one_more_begins_before_chunks_that_began_together_end_together(
    key: ApiKey, make_batch: Any, announced: Told, settings: Any
) -> None:
    settings.OCTAVO_BULK_CHUNKS = 2
    make_batch(key, 500)
    dispatch()
    first, second = (pk for task, pk in announced if task == RUN_CHUNK)
    answer(first, 25)
    answer(second, 24)
    assert dispatch() == 0
    answer(second, 1)
    assert dispatch() == 1
    answer(first, 74)
    answer(second, 74)
    assert dispatch() == 0
    finish(first)
    assert dispatch() == 1
    assert chunks_of(announced) == [("Acme", 0), ("Acme", 1), ("Acme", 2), ("Acme", 3)]


def test_ten_lines_do_not_stand_behind_fifty_thousand(
    key: ApiKey, make_batch: Any, announced: Told, settings: Any
) -> None:
    settings.OCTAVO_BULK_CHUNKS = 2
    make_batch(key, 1000)
    dispatch()
    other = create_key(create_tenant("Bolt"), "bulk", scopes=["batch"])[0]
    make_batch(other, 10)
    finish(announced[0][1])
    dispatch()
    assert chunks_of(announced)[2] == ("Bolt", 0)


def test_what_nobody_took_is_announced_again(
    key: ApiKey, make_batch: Any, announced: Told, settings: Any
) -> None:
    settings.OCTAVO_BULK_CHUNKS = 1
    batch = make_batch(key, 10)
    dispatch()
    batch.chunks.update(taken_until=timezone.now() - timedelta(seconds=1))
    assert dispatch() == 1
    assert chunks_of(announced) == [("Acme", 0)] * 2


def test_only_batches_in_progress_are_worked_on(key: ApiKey, make_batch: Any, announced: Told) -> None:
    batch = make_batch(key, 10)
    for status in set(BatchStatus) - {BatchStatus.IN_PROGRESS}:
        Batch.objects.filter(pk=batch.pk).update(status=status)
        assert dispatch() == 0
