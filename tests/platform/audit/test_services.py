"""Records as services write them: linked, complete, without secrets, whoever writes beside them."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import pytest
from django.db import connection, transaction

from api_keys.secrets_format import draw_key
from audit.chain import FIRST_PREVIOUS
from audit.head_file import read_heads
from audit.models import AuditRecord
from audit.selectors import records_of, verify_chain
from audit.services import record

NUM_WRITERS = 20
RECORDS_EACH = 5


@pytest.fixture(autouse=True)
def head_file(settings: object, tmp_path: Path) -> Path:
    path = tmp_path / "audit_head"
    settings.OCTAVO_AUDIT_HEAD_FILE = str(path)  # type: ignore[attr-defined]
    return path


def test_each_record_holds_the_hash_of_the_one_before(any_database: str, head_file: Path) -> None:
    first = record("system", "a", "s:1", {"weight": 1e20, "name": "é \0"}, before={"weight": 1.0})
    second = record("system", "a", "s:2", tenant_id=7)
    assert (first.id, first.previous_hash, second.previous_hash) == (1, FIRST_PREVIOUS, first.hash)
    assert read_heads(head_file) == {1: first.hash, 2: second.hash}
    assert verify_chain(read_heads(head_file)) == (2, None)
    assert list(records_of(7)) == [second] and list(records_of(None)) == [second, first]


def test_a_change_that_is_rolled_back_leaves_no_record_and_no_gap(any_database: str, head_file: Path) -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        record("system", "a", "s:1")
        raise RuntimeError
    kept = record("system", "a", "s:2")
    assert kept.id == 1
    assert read_heads(head_file) == {1: kept.hash}


class Colour(StrEnum):
    RED = "red"


def test_values_are_plain_json(any_database: str) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    record("system", "a", "s:1", {"colour": Colour.RED, "at": at, "set": None, "list": ["x", 1, True]})
    assert AuditRecord.objects.get().after == {
        "colour": "red",
        "at": "2026-01-01 00:00:00+00:00",
        "set": None,
        "list": ["x", 1, True],
    }


def test_no_secret_is_written(any_database: str) -> None:
    plaintext = draw_key().plaintext
    secret = plaintext.split("_")[2]
    record("system", "a", "s:1", {"password": secret, "note": f"use {plaintext}", "deep": {"digest": secret}})
    held = str(list(AuditRecord.objects.values_list()))
    assert secret not in held and held.count("[hidden]") == 3


def test_twenty_concurrent_writers_make_one_chain(any_database: str, head_file: Path) -> None:
    together = threading.Barrier(NUM_WRITERS)

    def write(writer: int) -> None:
        together.wait(60)
        try:
            for number in range(RECORDS_EACH):
                with transaction.atomic():
                    record(f"user:{writer}", "a", f"s:{number}")
        finally:
            connection.close()

    with ThreadPoolExecutor(NUM_WRITERS) as pool:
        list(pool.map(write, range(NUM_WRITERS)))

    total = NUM_WRITERS * RECORDS_EACH
    heads = read_heads(head_file)
    assert set(heads) == set(range(1, total + 1))
    assert verify_chain(heads) == (total, None)
    assert AuditRecord.objects.values("actor").distinct().count() == NUM_WRITERS


def test_the_head_file_is_its_owners_alone(any_database: str, head_file: Path) -> None:
    record("system", "a", "s:1")
    assert head_file.stat().st_mode & 0o777 == 0o600


def test_a_change_is_made_even_where_the_head_cannot_be_written(any_database: str, settings: object) -> None:
    settings.OCTAVO_AUDIT_HEAD_FILE = "/dev/null/audit_head"  # type: ignore[attr-defined]
    assert record("system", "a", "s:1").id == 1
    assert AuditRecord.objects.count() == 1
