"""Pages over big tables: nothing in them reads a whole table, however many rows it has."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from usage.models import DailyUsage

LEDGER = "admin:usage_ledgerentry_changelist"
AUDIT = "admin:audit_auditrecord_changelist"


@pytest.mark.parametrize(
    ("page", "query"),
    [
        (LEDGER, ""),
        (LEDGER, "?q=req_1"),
        (LEDGER, "?ending__exact=failed"),
        (LEDGER, "?tenant_id__exact=7"),
        (AUDIT, ""),
        (AUDIT, "?q=user:alice"),
        (AUDIT, "?what=session"),
    ],
)
def test_counts_are_bounded_and_search_can_use_an_index(
    transactional_db: None, page: str, query: str
) -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("alice"))
    with CaptureQueriesContext(connection) as captured:
        assert client.get(reverse(page) + query).status_code == 200
    table = "usage_ledgerentry" if page == LEDGER else "audit_auditrecord"
    statements = [each["sql"] for each in captured if f'FROM "{table}"' in each["sql"]]
    counts = [each for each in statements if "COUNT(" in each]
    assert len(counts) == 1 and " LIMIT 10000" in counts[0]
    assert not [each for each in statements if "UPPER(" in each or "DISTINCT" in each]


@pytest.mark.parametrize(("term", "found"), [("7", 1), ("key-of-eight", 1), (" 7 ", 1), ("9", 0), ("", 2)])
def test_sums_are_found_by_tenant_or_by_key(transactional_db: None, term: str, found: int) -> None:
    for tenant_id, key_id in ((7, "abc"), (8, "key-of-eight")):
        DailyUsage.objects.create(
            tenant_id=tenant_id, key_id=key_id, model="m", ending="finished", day="2026-11-30"
        )
    client = Client()
    client.force_login(User.objects.create_superuser("alice"))
    page = client.get(reverse("admin:usage_dailyusage_changelist"), {"q": term})
    assert page.context["cl"].result_count == found
