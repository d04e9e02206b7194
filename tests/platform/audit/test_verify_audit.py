"""manage.py verify_audit against a database that somebody tampered with, guards and all."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from audit.guards import install_guards, remove_guards
from audit.services import record

Tamper = Callable[[str], None]


@pytest.fixture(autouse=True)
def head_file(settings: object, tmp_path: Path) -> Path:
    path = tmp_path / "audit_head"
    settings.OCTAVO_AUDIT_HEAD_FILE = str(path)  # type: ignore[attr-defined]
    return path


@pytest.fixture
def trail(any_database: str) -> None:
    for number in range(1, 7):
        record(
            "user:alice", "tenant.update", f"tenant:{number}", {"weight": number / 2}, before={"weight": 1}
        )


@pytest.fixture
def tamper(trail: None) -> Tamper:
    def run(*statements: str) -> None:
        remove_guards(connection)
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        install_guards(connection)

    return run


def verify() -> str:
    out = StringIO()
    call_command("verify_audit", stdout=out)
    return out.getvalue()


def test_an_unbroken_trail(trail: None) -> None:
    assert verify() == "6 audit records, unbroken; 6 heads agree\n"


def test_an_empty_trail_needs_no_head_file(any_database: str) -> None:
    assert verify() == "0 audit records, unbroken; 0 heads agree\n"


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (["UPDATE audit_auditrecord SET actor = 'user:bob' WHERE id = 3"], "record 3 was changed"),
        (["DELETE FROM audit_auditrecord WHERE id = 3"], "record 3 is missing"),
        (
            [
                "UPDATE audit_auditrecord SET id = 30 WHERE id = 3",
                "UPDATE audit_auditrecord SET id = 3 WHERE id = 4",
                "UPDATE audit_auditrecord SET id = 4 WHERE id = 30",
            ],
            "record 3 was changed",
        ),
        (
            ["DELETE FROM audit_auditrecord WHERE id > 4"],
            r"record 5 is missing: .* reached record 6",
        ),
        (["DELETE FROM audit_auditrecord"], "record 1 is missing"),
    ],
    ids=["changed", "deleted", "swapped", "tail cut", "emptied"],
)
def test_tampering_is_named(tamper: Tamper, statements: list[str], said: str) -> None:
    tamper(*statements)
    with pytest.raises(CommandError, match=said):
        verify()


def test_records_added_after_a_cut_tail_do_not_hide_it(tamper: Tamper) -> None:
    tamper("DELETE FROM audit_auditrecord WHERE id > 4")
    for _ in range(3):
        record("user:bob", "tenant.update", "tenant:9")
    with pytest.raises(CommandError, match="contradicts an earlier head of record 5"):
        verify()


def test_a_missing_or_spoilt_head_file_vouches_for_nothing(trail: None, head_file: Path) -> None:
    head_file.write_text(head_file.read_text() + "7 nonsense\n")
    with pytest.raises(CommandError, match="line 7 is no head"):
        verify()
    head_file.unlink()
    with pytest.raises(CommandError, match="missing"):
        verify()
