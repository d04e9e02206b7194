"""/api/v1/keys/: a tenant's keys are its own; the secret is shown once."""

from datetime import timedelta

import pytest
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from api_keys.models import ApiKey
from api_keys.secrets_format import parse_authorization
from audit.models import AuditRecord
from management_callers import Caller
from usage.models import LedgerEntry


def ids(caller: Caller, path: str = "keys/") -> set[str]:
    return {each["id"] for each in caller.get(path).json["results"]}


def public_id(caller: Caller) -> str:
    assert caller.key is not None
    return caller.key.public_id


def test_team_mates_see_each_others_keys_and_outsiders_do_not(
    alice: Caller, bob: Caller, charlie: Caller, olga: Caller
) -> None:
    team = {public_id(alice), public_id(bob)}
    assert ids(alice) == ids(bob) == team
    assert ids(charlie) == {public_id(charlie)}
    assert ids(olga) == team | {public_id(charlie)}
    assert charlie.tenant is not None
    assert ids(olga, f"keys/?tenant={charlie.tenant.pk}") == {public_id(charlie)}


def test_anothers_key_is_not_there_and_nothing_is_changed(alice: Caller, charlie: Caller) -> None:
    """Case 30."""
    path = f"keys/{public_id(charlie)}/"
    before = ApiKey.objects.filter(public_id=public_id(charlie)).values().get()
    num_records = AuditRecord.objects.count()
    absent = alice.get("keys/nosuchkey/")
    for answer in (
        alice.get(path),
        alice.patch(path, {"name": "mine"}),
        alice.post(f"{path}rotate/"),
        alice.post(f"{path}revoke/"),
        alice.post("keys/", {"name": "k", "tenant": before["tenant_id"]}),
        alice.get(f"keys/?tenant={before['tenant_id']}"),
        alice.get("keys/?tenant=999999"),
    ):
        assert (answer.status, answer.json) == (404, absent.json)
    assert alice.delete(path).status == 405
    assert ApiKey.objects.filter(public_id=public_id(charlie)).values().get() == before
    assert (ApiKey.objects.count(), AuditRecord.objects.count()) == (2, num_records)


def test_a_new_keys_secret_is_in_one_answer(alice: Caller, bob: Caller) -> None:
    made = alice.post("keys/", {"name": "k", "allowed_models": ["m"], "scopes": ["inference", "batch"]})
    assert made.status == 201 and made.headers["Cache-Control"] == "no-store"
    presented = parse_authorization(f"Bearer {made.json['secret']}")
    key = ApiKey.objects.get(public_id=made.json["id"])
    assert presented is not None and presented.digest == bytes(key.digest)
    assert (key.scopes, key.allowed_models) == (["inference", "batch"], ["m"])

    secret = made.json["secret"].split("_")[2]
    shown = [bob.get(path).json for path in ("keys/", f"keys/{key.public_id}/", "audit/")]
    assert secret not in str(shown) and key.digest.hex() not in str(shown)
    assert alice.post("keys/", {"name": "plain"}).json["scopes"] == ["inference"]


def test_an_operator_names_the_tenant(olga: Caller, charlie: Caller) -> None:
    assert charlie.tenant is not None
    assert olga.post("keys/", {"name": "k"}).error["param"] == "tenant"
    assert olga.post("keys/", {"name": "k", "tenant": charlie.tenant.pk}).status == 201
    assert len(ids(charlie)) == 2


def test_a_key_is_changed(alice: Caller, bob: Caller) -> None:
    until = (timezone.now() + timedelta(days=1)).isoformat()
    path = f"keys/{public_id(bob)}/"
    for name, value in (("tenant", 999), ("revoked_at", until), ("is_active", False)):
        assert alice.patch(path, {"name": "renamed", name: value}).error["param"] == name
    changed = alice.patch(path, {"name": "renamed", "expires_at": until})
    assert (changed.json["name"], changed.json["revoked_at"]) == ("renamed", None)
    assert changed.json["expires_at"] is not None
    assert alice.patch(path, {"scopes": []}).error["param"] == "scopes"
    assert alice.patch(path, {"scopes": ["root"]}).error["param"] == "scopes.0"
    assert alice.patch(path, {"scopes": ["batch", "batch"]}).error["param"] == "scopes"


def test_a_key_is_rotated_with_grace(alice: Caller, bob: Caller) -> None:
    path = f"keys/{public_id(bob)}/"
    rotated = alice.post(f"{path}rotate/", {"grace_seconds": 3600})
    assert (rotated.status, rotated.json["id"]) == (201, public_id(bob))
    assert rotated.headers["Cache-Control"] == "no-store"
    assert bob.get("keys/").status == 200
    new_bob = bob._replace(headers={"Authorization": f"Bearer {rotated.json['secret']}"})
    assert new_bob.get("keys/").status == 200
    assert alice.post(f"{path}rotate/", {"grace_seconds": -1}).error["param"] == "grace_seconds"
    alice.post(f"{path}rotate/")
    assert [bob.get("keys/").status, new_bob.get("keys/").status] == [401, 401]


def test_a_key_is_revoked_for_good(alice: Caller, bob: Caller) -> None:
    path = f"keys/{public_id(bob)}/"
    assert alice.post(f"{path}revoke/").json["is_usable"] is False
    assert alice.post(f"{path}revoke/").status == 200
    assert bob.get("keys/").status == 401
    assert alice.post(f"{path}rotate/").status == 400
    assert AuditRecord.objects.filter(action="api_key.revoke").count() == 1


def test_a_typing_error_in_a_filter_does_not_widen_it(alice: Caller) -> None:
    assert alice.get("keys/?tenannt=1").error["param"] == "tenannt"


@pytest.mark.parametrize(
    "query",
    [
        "tenant=x",
        "tenant=0",
        "tenant=99999999999999999999",
        "cursor=cD1hYmM%3D",
        "cursor=cD0lMDA%3D",
    ],
)
def test_a_filter_that_makes_no_sense(olga: Caller, query: str) -> None:
    assert olga.get(f"keys/?{query}").status in {400, 404}


def test_a_keys_last_use_is_shown(alice: Caller, bob: Caller) -> None:
    path = f"keys/{public_id(bob)}/"
    assert alice.get(path).json["last_used_at"] is None
    assert bob.tenant is not None
    used_at = timezone.now()
    LedgerEntry.objects.create(
        request_id="r1",
        tenant_id=bob.tenant.pk,
        key_id=public_id(bob),
        model="m",
        admitted_at=used_at,
        finished_at=used_at,
        ending="finished",
        source="authoritative",
    )
    shown = [alice.get(path), alice.patch(path, {"name": "b"}), alice.post(f"{path}rotate/")]
    assert {parse_datetime(each.json["last_used_at"]) for each in shown} == {used_at}
