"""The model refuses, and so does each database when it is asked in SQL."""

import pytest
from django.db import DatabaseError, connection

from audit.models import AuditRecord
from audit.services import record


@pytest.fixture
def written(any_database: str) -> AuditRecord:
    return record("user:alice", "tenant.create", "tenant:1", {"name": "Acme"})


def test_the_model_neither_changes_nor_deletes(written: AuditRecord) -> None:
    written.actor = "user:bob"
    with pytest.raises(TypeError):
        written.save()
    with pytest.raises(TypeError):
        written.delete()
    with pytest.raises(TypeError):
        AuditRecord.objects.update(actor="user:bob")
    with pytest.raises(TypeError):
        AuditRecord.objects.filter(pk=1).delete()
    assert AuditRecord.objects.get().actor == "user:alice"


SQL = {
    "update": "UPDATE audit_auditrecord SET actor = 'user:bob'",
    "delete": "DELETE FROM audit_auditrecord",
    "a gap": (
        "INSERT INTO audit_auditrecord SELECT 3, at, actor, action, subject, after, before, tenant_id, "
        "request_id, address, previous_hash, hash FROM audit_auditrecord"
    ),
}
OF_ONE = {
    "sqlite": {"replace": "INSERT OR REPLACE" + SQL["a gap"].removeprefix("INSERT").replace("3,", "1,")},
    "postgresql": {"truncate": "TRUNCATE audit_auditrecord CASCADE"},
}


def test_the_database_refuses_what_is_no_addition_at_the_end(any_database: str, written: AuditRecord) -> None:
    for name, statement in {**SQL, **OF_ONE[any_database]}.items():
        with pytest.raises(DatabaseError, match=r"never changed|never deleted|at the end"):
            with connection.cursor() as cursor:
                cursor.execute(statement)
            pytest.fail(name)
    assert AuditRecord.objects.get().actor == "user:alice"
