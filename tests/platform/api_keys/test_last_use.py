"""When a key was last used is read from the ledger."""

from datetime import UTC, datetime

from django.db import connection
from django.test.utils import CaptureQueriesContext

from api_keys.models import ApiKey
from api_keys.selectors import with_last_use
from api_keys.services import create_key
from tenants.services import create_tenant
from usage.models import LedgerEntry


def test_the_newest_request_of_each_key_in_one_query(any_database: str) -> None:
    tenant = create_tenant("Acme")
    used, unused = (create_key(tenant, name)[0] for name in ("used", "unused"))
    for day in (3, 9, 5):
        at = datetime(2026, 11, day, tzinfo=UTC)
        LedgerEntry.objects.create(
            request_id=f"r{day}", tenant_id=tenant.pk, key_id=used.public_id, admitted_at=at, finished_at=at
        )
    with CaptureQueriesContext(connection) as queries:
        found = {key.public_id: key.last_used_at for key in with_last_use(ApiKey.objects.all())}  # type: ignore[attr-defined]
    assert found == {used.public_id: datetime(2026, 11, 9, tzinfo=UTC), unused.public_id: None}
    assert len(queries) == 1
