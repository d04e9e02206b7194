"""Usage leaves as CSV and JSON."""

import csv
import io
import json
from collections.abc import Callable

import pytest
from django.core.management import CommandError, call_command

from tenants.services import create_tenant
from usage.models import LedgerEntry
from usage.services import insert_rows

MakeRow = Callable[..., LedgerEntry]
RANGE = ("--since", "2026-11-30", "--until", "2026-12-01")


def export(*arguments: str) -> str:
    out = io.StringIO()
    call_command("export_usage", *arguments, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def test_requests_of_a_time_as_csv(any_database: str, row: MakeRow) -> None:
    insert_rows(
        [
            row("late", "2026-11-30T12:00:00", metadata={"a": "b, c"}, user='say "hi"\nthere'),
            row("early", "2026-11-30T00:00:00"),
            row("next day", "2026-12-01T00:00:00"),
            row("formula", "2026-11-30T13:00:00", user="=HYPERLINK(1)"),
        ]
    )
    rows = list(csv.DictReader(io.StringIO(export("requests", *RANGE), newline="")))
    assert [each["request_id"] for each in rows] == ["early", "late", "formula"]
    assert (rows[1]["user"], json.loads(rows[1]["metadata"])) == ('say "hi"\nthere', {"a": "b, c"})
    assert (rows[0]["prompt_tokens"], rows[0]["admitted_at"]) == ("7", "2026-11-30T00:00:00+00:00")
    assert rows[2]["user"] == "'=HYPERLINK(1)"


@pytest.mark.parametrize("what", ["requests", "hours", "days"])
def test_everything_as_json_of_one_tenant(any_database: str, row: MakeRow, what: str) -> None:
    tenant = create_tenant("Acme")
    insert_rows(
        [row("a", tenant_id=tenant.pk), row("b", tenant_id=tenant.pk), row("c", tenant_id=tenant.pk + 1)]
    )
    rows = json.loads(export(what, *RANGE, "--format", "json", "--tenant", "acme"))
    assert {each["tenant_id"] for each in rows} == {tenant.pk}
    assert sum(each["prompt_tokens"] for each in rows) == 14
    assert "id" not in rows[0]


def test_nothing_is_an_empty_export(transactional_db: None) -> None:
    assert json.loads(export("days", *RANGE, "--format", "json")) == []
    assert export("hours", *RANGE).startswith("tenant_id,key_id,model,ending,num_requests")


def test_more_rows_than_a_chunk(any_database: str, row: MakeRow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("usage.export.CHUNK", 10)
    insert_rows([row(f"r{number:03}") for number in range(55)])
    rows = json.loads(export("requests", *RANGE, "--format", "json"))
    assert [each["request_id"] for each in rows] == [f"r{number:03}" for number in range(55)]


def test_a_wrong_tenant_is_a_clear_error(transactional_db: None) -> None:
    with pytest.raises(CommandError, match="no tenant 'nobody'"):
        export("days", *RANGE, "--tenant", "nobody")
