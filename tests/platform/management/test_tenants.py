"""/api/v1/tenants/: changes by operators; a tenant sees itself."""

import json

import pytest
import redis

from audit.models import AuditRecord
from management_callers import Caller
from tenants.models import Tenant
from tenants.shards import epoch_key


def test_a_tenant_sees_itself_and_nobody_else(alice: Caller, bob: Caller, charlie: Caller) -> None:
    assert alice.tenant is not None and charlie.tenant is not None
    for one in (alice, bob):
        assert [each["slug"] for each in one.get("tenants/").json["results"]] == ["acme"]
        assert one.get(f"tenants/{alice.tenant.pk}/").json["name"] == "Acme"
        theirs = one.get(f"tenants/{charlie.tenant.pk}/")
        absent = one.get("tenants/999999/")
        assert (theirs.status, theirs.json) == (absent.status, absent.json) == (404, absent.json)
    assert [each["slug"] for each in charlie.get("tenants/").json["results"]] == ["rival"]


def test_an_operator_makes_and_changes_tenants(olga: Caller, store: redis.Redis) -> None:
    made = olga.post("tenants/", {"name": "New Corp", "weight": 2, "features": ["tools"], "time_zone": "UTC"})
    assert made.status == 201, made.json
    assert (made.json["slug"], made.json["weight"], made.json["status"]) == ("new-corp", 2.0, "active")
    path = f"tenants/{made.json['id']}/"

    changed = olga.patch(path, {"max_output_tokens": 50, "allowed_models": ["m"]})
    assert (changed.json["max_output_tokens"], changed.json["policy_epoch"]) == (50, 2)
    assert store.get(epoch_key(made.json["id"])) == b"2"
    assert olga.patch(path, {}).json["policy_epoch"] == 2

    assert olga.post(f"{path}suspend/").json["status"] == "suspended"
    assert olga.post(f"{path}activate/").json["status"] == "active"
    records = AuditRecord.objects.filter(subject=f"tenant:{made.json['id']}")
    assert {each.actor for each in records} == {"user:olga"} and len(records) == 4


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"status": "suspended"}, "status"),
        ({"policy_epoch": 99, "weight": 2}, "policy_epoch"),
        ({"id": 5}, "id"),
        ({"weigth": 2}, "weigth"),
    ],
)
def test_what_cannot_be_set_is_refused(
    olga: Caller, tenant: Tenant, body: dict[str, object], param: str
) -> None:
    """Answered with 200 it would look as if it had been set."""
    for answer in (olga.patch(f"tenants/{tenant.pk}/", body), olga.post("tenants/", {"name": "New", **body})):
        assert (answer.status, answer.error["param"]) == (400, param)
    tenant.refresh_from_db()
    assert (tenant.policy_epoch, tenant.status, tenant.weight, Tenant.objects.count()) == (
        1,
        "active",
        1.0,
        1,
    )


def test_what_was_read_may_be_sent_back_changed(olga: Caller, tenant: Tenant) -> None:
    path = f"tenants/{tenant.pk}/"
    answer = olga.patch(path, {**olga.get(path).json, "weight": 2})
    assert (answer.status, answer.json.get("weight")) == (200, 2.0)


@pytest.mark.parametrize("body", [None, [], "weight", 5])
def test_a_body_that_is_no_object_is_refused(olga: Caller, tenant: Tenant, body: object) -> None:
    text = json.dumps(body)
    response = olga.client.patch(f"/api/v1/tenants/{tenant.pk}/", text, content_type="application/json")
    assert response.status_code == 400


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "Acme"}, "name"),
        ({"name": "New", "slug": "acme"}, "slug"),
        ({"name": "New", "slug": "a b"}, "slug"),
        ({"name": "New", "weight": 0}, "weight"),
        ({"name": "New", "weight": "x"}, "weight"),
        ({"name": "New", "weight": True}, "weight"),
        ({"name": "New", "queue_timeout_seconds": True}, "queue_timeout_seconds"),
        ({"name": "New", "max_output_tokens": 0}, "max_output_tokens"),
        ({"name": "New", "max_output_tokens": 10**30}, "max_output_tokens"),
        ({"name": "New", "service_class": "gold"}, "service_class"),
        ({"name": "New", "allowed_models": "m"}, "allowed_models"),
        ({"name": "New", "allowed_models": ["m", ""]}, "allowed_models.1"),
        ({"name": "New", "features": ["magic"]}, "features.0"),
        ({"name": "New", "model_aliases": {"a": ""}}, "model_aliases.a"),
        ({"name": "New", "time_zone": "Mars/Olympus"}, "time_zone"),
        ({"name": "\u0000"}, "name"),
        ([], None),
    ],
)
def test_wrong_fields_are_named(olga: Caller, body: object, param: str | None) -> None:
    answer = olga.post("tenants/", body)
    assert (answer.status, answer.error["param"], answer.error["code"]) == (400, param, "invalid_request")
    assert Tenant.objects.count() == 1


@pytest.mark.parametrize(
    "text",
    [
        '{"name": NaN}',
        '{"name": "a", "name": "b"}',
        '{"a": {"b": 1, "b": 1}}',
        "{",
        "[" * 100_000,
        '{"name": "\udcff"}',
        "\xff",
    ],
)
def test_what_is_no_json_is_told_so(olga: Caller, text: str) -> None:
    data = text.encode("utf-8", "surrogateescape") if text != "\xff" else b"\xff"
    response = olga.client.post("/api/v1/tenants/", data, content_type="application/json")
    assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid_json")


def test_infinity_in_disguise_is_refused(olga: Caller) -> None:
    data = '{"name": "New", "weight": 1e999}'
    response = olga.client.post("/api/v1/tenants/", data, content_type="application/json")
    assert (response.status_code, response.json()["error"]["param"]) == (400, "weight")


def test_tenants_are_not_deleted(olga: Caller, tenant: Tenant) -> None:
    answer = olga.delete(f"tenants/{tenant.pk}/")
    assert (answer.status, answer.error["code"]) == (405, "method_not_allowed")


def test_a_body_that_is_no_json_and_an_answer_in_another_form(olga: Caller) -> None:
    response = olga.client.post(
        "/api/v1/tenants/", "name=x", content_type="application/x-www-form-urlencoded"
    )
    assert (response.status_code, response.json()["error"]["type"]) == (415, "invalid_request_error")
    response = olga.client.get("/api/v1/tenants/", headers={"Accept": "text/html"})
    assert response.status_code == 406


def test_pages_follow_each_other(olga: Caller) -> None:
    for number in range(4):
        olga.post("tenants/", {"name": f"T{number}"})
    first = olga.get("tenants/?page_size=3")
    assert [each["name"] for each in first.json["results"]] == ["T3", "T2", "T1"]
    second = olga.get(first.json["next"])
    assert [each["name"] for each in second.json["results"]] == ["T0", "Acme"] and second.json["next"] is None


@pytest.mark.parametrize(
    "path", ["nothing/", "tenants", "", "tenants/x/", "keys/a/b/c/d/", "keys/%0A/rotate/"]
)
def test_what_is_not_there_has_the_same_shape(olga: Caller, path: str) -> None:
    answer = olga.get(path)
    assert (answer.status, answer.error["code"]) == (404, "not_found")
    assert olga.post(path).status == 404
