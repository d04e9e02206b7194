"""Reads of the audit trail."""

from collections.abc import Mapping
from typing import NamedTuple

from django.db.models import QuerySet

from audit.chain import find_break
from audit.models import AuditRecord

CHUNK = 2000


class Verdict(NamedTuple):
    num_records: int
    problem: str | None


def verify_chain(heads: Mapping[int, str]) -> Verdict:
    """`heads` must have been read before: then each of them speaks of a record that was there."""
    problem = find_break(AuditRecord.objects.order_by("id").iterator(chunk_size=CHUNK), heads)
    return Verdict(AuditRecord.objects.count(), problem)


def records_of(tenant_id: int | None) -> QuerySet[AuditRecord]:
    """Newest first: of one tenant, or all for None."""
    records = AuditRecord.objects.all()
    return records if tenant_id is None else records.filter(tenant_id=tenant_id)
