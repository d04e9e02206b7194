"""Writes audit records, inside the transaction of the change they tell of."""

from collections.abc import Mapping
from pathlib import Path

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from audit.chain import FIRST_PREVIOUS, link_hash
from audit.head_file import write_head
from audit.models import AuditRecord, Values
from audit.origin import current_origin
from control_plane.log_format import hide_secrets

CHAIN_LOCK = 0x0C7A_A0D1
"""PostgreSQL's advisory lock of whoever adds to the chain, held until the transaction ends."""


def record(
    actor: str,
    action: str,
    subject: str,
    after: Mapping[str, object] | None = None,
    *,
    before: Mapping[str, object] | None = None,
    tenant_id: int | None = None,
) -> AuditRecord:
    """`after` and `before` hold what the change touched; whatever looks like a secret is hidden.

    `actor` is user:NAME, api_key:ID, `command line` or `system`. `tenant_id` is the tenant it concerns, whose
    own keys may read it.
    """
    origin = current_origin()
    written = AuditRecord(
        actor=actor,
        action=action,
        subject=subject,
        tenant_id=tenant_id,
        before=_plain(before),
        after=_plain(after),
        request_id=origin.request_id,
        address=origin.address,
    )
    with transaction.atomic():
        _append(written)
    return written


def _append(written: AuditRecord) -> None:
    """One writer at a time: SQLite's transactions begin with its write lock, PostgreSQL is asked for one."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CHAIN_LOCK])
    last = AuditRecord.objects.order_by("-id").values_list("id", "hash").first()
    last_id, written.previous_hash = last or (0, FIRST_PREVIOUS)
    written.id, written.at = last_id + 1, timezone.now()
    written.hash = link_hash(written)
    written.save()
    path, record_id, record_hash = Path(settings.OCTAVO_AUDIT_HEAD_FILE), written.id, written.hash
    transaction.on_commit(lambda: write_head(path, record_id, record_hash))


def _plain(values: Mapping[str, object] | None) -> Values | None:
    """JSON values only, without secrets, and without the null character, which PostgreSQL can't hold."""
    if values is None:
        return None
    cleaned: Values = hide_secrets(None, "", dict(values))  # type: ignore[assignment]
    return {name.replace("\0", ""): _without_nulls(value) for name, value in cleaned.items()}


def _without_nulls(value: object) -> object:
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
