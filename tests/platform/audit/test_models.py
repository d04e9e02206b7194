import pytest

from audit.models import AuditRecord
from audit.services import record


def test_records_are_neither_changed_nor_deleted(transactional_db: None) -> None:
    record("alice", "tenant.create", "tenant:1", {"name": "Acme"})
    written = AuditRecord.objects.get()
    written.actor = "bob"

    with pytest.raises(TypeError):
        written.save()
    with pytest.raises(TypeError):
        written.delete()
    assert AuditRecord.objects.get().actor == "alice"
