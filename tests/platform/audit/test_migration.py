"""Records of before there was a chain become its first links."""

from datetime import UTC, datetime

from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from audit.models import AuditRecord
from audit.selectors import verify_chain


def migrate_audit(name: str) -> None:
    MigrationExecutor(connection).migrate([("audit", name)])


def test_earlier_records_are_chained(any_database: str) -> None:
    migrate_audit("0001_initial")
    try:
        old = MigrationExecutor(connection).loader.project_state([("audit", "0001_initial")]).apps
        records = old.get_model("audit", "AuditRecord").objects
        for number, actor in enumerate(("system", "alice", "command line"), 1):
            records.create(id=number * 2, actor=actor, action="a", subject="s", detail={"n": number})
    finally:
        migrate_audit("0002_hash_chain")

    assert verify_chain({}) == (3, None)
    assert [(each.id, each.actor, each.after) for each in AuditRecord.objects.order_by("id")] == [
        (1, "system", {"n": 1}),
        (2, "user:alice", {"n": 2}),
        (3, "command line", {"n": 3}),
    ]
    assert all(each.at <= datetime.now(UTC) for each in AuditRecord.objects.all())
