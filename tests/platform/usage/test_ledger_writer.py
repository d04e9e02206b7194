"""From the streams into the ledger: each request once, whatever is killed or away in between."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
import redis
from django.db import DatabaseError, connection

from stream_rows import STREAM_ROW
from tenants.shards import bucket_key
from usage.ledger_writer import LedgerWriter
from usage.models import LedgerEntry
from usage.selectors import find_entry, tenant_totals
from usage.stream import GROUP, dead_letter_key

Append = Callable[..., None]


@pytest.fixture
def append(store: redis.Redis) -> Append:
    def add(request_id: str, tenant_id: int = 7, **changes: str) -> None:
        fields = {**STREAM_ROW, "request_id": request_id, "tenant_id": str(tenant_id), **changes}
        store.xadd(bucket_key(tenant_id % 64, "ledger"), fields)  # type: ignore[arg-type]

    return add


def drain(store: redis.Redis) -> int:
    writer, total = LedgerWriter(store), 0
    while written := writer.write_some(1):
        total += written
    return total


def left_in_streams(store: redis.Redis) -> tuple[int, int]:
    """Entries, and entries read but not acknowledged."""
    streams = [bucket_key(number, "ledger") for number in range(64)]
    lengths = sum(store.xlen(stream) for stream in streams)  # type: ignore[misc]
    return lengths, sum(store.xpending(stream, GROUP)["pending"] for stream in streams)  # type: ignore[index, misc]


def test_rows_of_all_buckets_arrive_and_leave_the_streams(
    any_database: str, store: redis.Redis, append: Append
) -> None:
    for tenant_id in range(130):
        append(f"r{tenant_id}", tenant_id, metadata='{"a": "b"}')
    assert drain(store) == 130
    assert LedgerEntry.objects.count() == 130 and left_in_streams(store) == (0, 0)
    entry = find_entry("r129")
    assert entry is not None and (entry.tenant_id, entry.metadata) == (129, {"a": "b"})


def test_a_request_that_arrives_twice_is_one_row_and_the_first_counts(
    any_database: str, store: redis.Redis, append: Append
) -> None:
    append("r1", output_tokens="3")
    append("r1", output_tokens="9")
    drain(store)
    append("r1", output_tokens="12")
    drain(store)
    assert [entry.output_tokens for entry in LedgerEntry.objects.all()] == [3]
    assert not store.exists(dead_letter_key(bucket_key(7, "ledger")))
    assert left_in_streams(store) == (0, 0)


def test_killed_between_insert_and_acknowledgement_the_next_writer_takes_it_once(
    any_database: str, store: redis.Redis, append: Append, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(self: LedgerWriter, *_: object) -> None:
        raise Killed

    for number in range(250):
        append(f"r{number}")
    with monkeypatch.context() as patched:
        patched.setattr(LedgerWriter, "_acknowledge", killed)
        with pytest.raises(Killed):
            LedgerWriter(store).write_some(1)
    assert LedgerEntry.objects.count() == 100 and left_in_streams(store) == (250, 100)

    assert drain(store) == 250
    assert LedgerEntry.objects.count() == 250 and left_in_streams(store) == (0, 0)


def test_rows_wait_while_the_database_can_not_take_them(
    any_database: str, store: redis.Redis, append: Append
) -> None:
    def rename(before: str, after: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {before} RENAME TO {after}")

    append("r1")
    writer = LedgerWriter(store)
    rename("usage_ledgerentry", "elsewhere")
    for _ in range(3):
        with pytest.raises(DatabaseError):
            writer.write_some(1)
    rename("elsewhere", "usage_ledgerentry")
    assert left_in_streams(store) == (1, 1)
    append("r2")
    while writer.write_some(1):
        pass
    assert LedgerEntry.objects.count() == 2 and left_in_streams(store) == (0, 0)


def test_what_can_not_be_read_is_put_aside_and_holds_up_nothing(
    any_database: str, store: redis.Redis, append: Append
) -> None:
    append("r1")
    append("broken", ending="exploded")
    append("r2")
    drain(store)
    assert {entry.request_id for entry in LedgerEntry.objects.all()} == {"r1", "r2"}
    ((_, dead),) = store.xrange(dead_letter_key(bucket_key(7, "ledger")))  # type: ignore[misc]
    assert dead[b"request_id"] == b"broken" and left_in_streams(store) == (0, 0)


def test_groups_that_redis_forgot_are_made_again(
    transactional_db: None, store: redis.Redis, append: Append
) -> None:
    writer = LedgerWriter(store)
    writer.write_some(1)
    store.delete(*store.scan_iter("octavo:{b:*"))  # type: ignore[misc]
    append("r1")
    with pytest.raises(redis.ResponseError, match="NOGROUP"):
        writer.write_some(1)
    assert writer.write_some(1) == 1
    assert LedgerEntry.objects.count() == 1


def test_totals_cover_the_time_asked_for(any_database: str, store: redis.Redis, append: Append) -> None:
    for number, finished_at in enumerate(("10", "20", "30")):
        append(f"r{number}", finished_at=finished_at)
    append("other", tenant_id=8, finished_at="20")
    drain(store)
    since, until = (datetime.fromtimestamp(second, UTC) for second in (10, 30))
    totals = tenant_totals(7, since, until)
    assert (totals["num_requests"], totals["prompt_tokens"], totals["output_tokens"]) == (2, 14, 6)
    assert tenant_totals(9, since, until)["output_tokens"] == 0
