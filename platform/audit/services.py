"""Writes audit records, inside the transaction of the change they tell of."""

from audit.models import AuditRecord

Detail = dict[str, object]


def record(actor: str, action: str, subject: str, detail: Detail | None = None) -> None:
    """`actor` is an operator's name or `system`; `detail` holds JSON values and never a secret."""
    AuditRecord.objects.create(actor=actor, action=action, subject=subject, detail=detail or {})
