"""What the ledger's writer put aside: told, and written once it can be read."""

from io import StringIO

import pytest
import redis
from django.core.management import CommandError, call_command

from stream_rows import STREAM_ROW
from tenants.shards import bucket_key
from usage.dead_letters import AT_ONCE
from usage.ledger_writer import LedgerWriter
from usage.models import DailyUsage, LedgerEntry
from usage.stream import dead_letter_key

STREAM = bucket_key(7, "ledger")


@pytest.fixture(autouse=True)
def _platform(any_database: str, store: redis.Redis) -> None:
    """On either database."""


def put_aside(store: redis.Redis, **changes: str) -> None:
    store.xadd(dead_letter_key(STREAM), {**STREAM_ROW, **changes})  # type: ignore[arg-type]


def replay(*arguments: str) -> list[str]:
    out = StringIO()
    call_command("replay_dead_letters", *arguments, stdout=out)
    return out.getvalue().splitlines()


def test_what_can_be_read_by_now_is_written_once_and_counted(store: redis.Redis) -> None:
    for number in range(AT_ONCE + 5):
        put_aside(store, request_id=f"r{number}", metadata='{"a": "\\\\u0000"}')
    put_aside(store, request_id="r0")
    lines = replay()
    assert len(lines) == AT_ONCE + 6 and all(line.endswith(": written") for line in lines)
    assert LedgerEntry.objects.count() == DailyUsage.objects.get().num_requests == AT_ONCE + 5
    assert not store.xlen(dead_letter_key(STREAM)) and replay() == []


def test_what_still_can_not_be_read_is_named_and_stays(store: redis.Redis) -> None:
    put_aside(store, ending="exploded")
    put_aside(store, request_id="r2")
    with pytest.raises(CommandError, match="1 entries still"):
        replay()
    assert [entry.request_id for entry in LedgerEntry.objects.all()] == ["r2"]
    assert store.xlen(dead_letter_key(STREAM)) == 1


def test_from_the_writer_through_a_field_that_is_cleared(store: redis.Redis) -> None:
    store.xadd(STREAM, {**STREAM_ROW, "metadata": '{"broken', "user": "u"})
    LedgerWriter(store).write_some(1)
    with pytest.raises(CommandError):
        replay("--clear", "user")
    (line,) = replay("--clear", "user", "--clear", "metadata")
    assert line.startswith(f"{STREAM}:dead ") and line.endswith(" r1: written")
    assert LedgerEntry.objects.get().metadata == {}


def test_a_row_that_can_be_written_keeps_all_its_fields(store: redis.Redis) -> None:
    put_aside(store, user="u", metadata='{"a": "b"}')
    replay("--clear", "user", "--clear", "metadata")
    row = LedgerEntry.objects.get()
    assert (row.user, row.metadata) == ("u", {"a": "b"})


def test_what_is_counted_can_not_be_cleared(store: redis.Redis) -> None:
    with pytest.raises(CommandError, match="invalid choice"):
        replay("--clear", "output_tokens")
