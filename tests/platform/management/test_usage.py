"""/api/v1/usage/: a tenant sees what it used, and nobody else's."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from management_callers import Caller
from usage.models import Ending, LedgerEntry, Source
from usage.services import insert_rows

NOON = timezone.now().replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=2)


def add(caller: Caller, request_id: str, at: datetime = NOON, **fields: Any) -> None:
    assert caller.tenant is not None and caller.key is not None
    plain = {"prompt_tokens": 10, "output_tokens": 5, "model": "m", "ending": Ending.FINISHED}
    row = LedgerEntry(
        request_id=request_id,
        tenant_id=caller.tenant.pk,
        tenant_name=caller.tenant.name,
        key_id=caller.key.public_id,
        key_name=caller.key.name,
        endpoint="/v1/completions",
        admitted_at=at,
        finished_at=at + timedelta(seconds=2),
        source=Source.AUTHORITATIVE,
        **{**plain, **fields},
    )
    assert insert_rows([row]) == []


@pytest.fixture(autouse=True)
def used(alice: Caller, bob: Caller, charlie: Caller) -> None:
    add(alice, "a1")
    add(alice, "a2", NOON + timedelta(hours=3), model="other", ending=Ending.ABORTED)
    add(bob, "b1", NOON + timedelta(days=1))
    add(charlie, "c1", prompt_tokens=1000)


def request_ids(caller: Caller, query: str = "") -> list[str]:
    return [each["request_id"] for each in caller.get(f"usage/requests/?{query}").json["results"]]


def text(at: datetime) -> str:
    return quote(at.isoformat())


def test_a_tenant_sees_its_requests_newest_first(
    alice: Caller, bob: Caller, charlie: Caller, olga: Caller
) -> None:
    assert request_ids(alice) == request_ids(bob) == ["b1", "a2", "a1"]
    assert request_ids(charlie) == ["c1"]
    assert set(request_ids(olga)) == {"a1", "a2", "b1", "c1"}


def test_anothers_usage_is_not_there(alice: Caller, charlie: Caller) -> None:
    """Case 30."""
    assert charlie.tenant is not None
    assert alice.get("usage/requests/a1/").json["prompt_tokens"] == 10
    absent = alice.get("usage/requests/nothing/")
    theirs = alice.get("usage/requests/c1/")
    assert (theirs.status, theirs.json) == (absent.status, absent.json) == (404, absent.json)
    for what in ("requests", "hourly", "daily", "totals"):
        assert alice.get(f"usage/{what}/?tenant={charlie.tenant.pk}").status == 404
    for method in ("post", "patch", "delete"):
        assert alice.call(method, "usage/requests/c1/").status == 405


def test_a_name_that_no_column_holds_is_not_there(alice: Caller) -> None:
    """PostgreSQL would not even compare it."""
    with CaptureQueriesContext(connection) as queries:
        assert alice.get("usage/requests/a%00b/").status == 404
    assert not [each for each in queries if "usage_ledgerentry" in each["sql"]]


def test_what_is_asked_for_is_what_comes(alice: Caller, bob: Caller) -> None:
    assert bob.key is not None
    assert request_ids(alice, f"key={bob.key.public_id}") == ["b1"]
    assert request_ids(alice, "model=other") == ["a2"]
    assert request_ids(alice, "ending=finished") == ["b1", "a1"]
    since, until = NOON + timedelta(hours=3), NOON + timedelta(days=1)
    assert request_ids(alice, f"since={text(since)}&until={text(until)}") == ["a2"]
    assert request_ids(alice, f"until={text(NOON - timedelta(days=40))}") == []
    for wrong in ("since=yesterday", "ending=happy", "until=0001-01-01T00:00:00Z", "what=1", "format=csv"):
        assert alice.get(f"usage/requests/?{wrong}").status == 400, wrong


@pytest.mark.parametrize("what", ["requests", "hourly", "daily", "totals"])
def test_a_time_that_ends_with_the_calendar_is_a_time(alice: Caller, what: str) -> None:
    for at in ("until=9999-12-31T23:59:59Z", "since=9999-12-31T12:00:00Z&until=9999-12-31T23:59:59Z"):
        assert alice.get(f"usage/{what}/?{at}").status == 200, at


def test_where_an_engine_is_is_not_for_tenants(alice: Caller, olga: Caller) -> None:
    """They see which of the engines it was, and operators all of its name."""
    name = "unix:/srv/octavo/run/engine.sock@rack7"
    for request_id, replica in (("e1", name), ("e2", name), ("e3", "other")):
        add(alice, request_id, replica=replica)
    assert [olga.get(f"usage/requests/{one}/").json["replica"] for one in ("e1", "e3")] == [name, "other"]
    seen = {each["request_id"]: each["replica"] for each in alice.get("usage/requests/").json["results"]}
    assert seen["a1"] == "" and seen["e1"] == seen["e2"] != seen["e3"]
    assert all(seen[one].startswith("engine-") for one in ("e1", "e3")) and "rack7" not in seen["e1"]
    assert alice.get("usage/requests/e1/").json["replica"] == seen["e1"]


def test_pages_hold_each_row_once(alice: Caller) -> None:
    for number in range(5):
        add(alice, f"p{number}")  # all at the same moment
    seen, path = [], "usage/requests/?page_size=2"
    while path:
        page = alice.get(path).json
        seen += [each["request_id"] for each in page["results"]]
        path = page["next"]
    assert sorted(seen) == sorted(["a1", "a2", "b1", *(f"p{number}" for number in range(5))])


def test_sums_by_hour_and_by_day(alice: Caller, charlie: Caller) -> None:
    hours = alice.get("usage/hourly/?model=m").json["results"]
    assert [(each["hour"], each["num_requests"], each["prompt_tokens"]) for each in hours] == [
        (f"{NOON + timedelta(days=1):%Y-%m-%dT%H:00:00Z}", 1, 10),
        (f"{NOON:%Y-%m-%dT%H:00:00Z}", 1, 10),
    ]
    days = alice.get("usage/daily/").json["results"]
    assert sum(each["num_requests"] for each in days) == 3
    assert {each["day"] for each in days} == {f"{NOON:%Y-%m-%d}", f"{NOON + timedelta(days=1):%Y-%m-%d}"}
    midnight = NOON.replace(hour=0)
    one_day = f"since={text(midnight)}&until={text(midnight + timedelta(days=1))}"
    assert {each["day"] for each in alice.get(f"usage/daily/?{one_day}").json["results"]} == {
        f"{NOON:%Y-%m-%d}"
    }
    assert [each["prompt_tokens"] for each in charlie.get("usage/daily/").json["results"]] == [1000]


def test_totals(alice: Caller, olga: Caller) -> None:
    sums = alice.get("usage/totals/").json
    assert {name: sums[name] for name in ("num_requests", "prompt_tokens", "output_tokens")} == {
        "num_requests": 3,
        "prompt_tokens": 30,
        "output_tokens": 15,
    }
    assert olga.get("usage/totals/").json["prompt_tokens"] == 1030
    empty = alice.get(f"usage/totals/?until={text(datetime(2020, 1, 1, tzinfo=UTC))}").json
    assert (empty["num_requests"], empty["output_tokens"]) == (0, 0)
