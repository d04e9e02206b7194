"""/api/v1/limits/: operators set them, a tenant reads its own."""

import pytest

from audit.models import AuditRecord
from management_callers import Caller
from quotas.models import Limit
from quotas.services import set_limit


def test_a_limit_is_set_changed_and_cleared(olga: Caller, alice: Caller) -> None:
    assert alice.tenant is not None
    body = {"tenant": alice.tenant.pk, "kind": "requests_per_minute", "value": 60, "burst": 5}
    made = olga.post("limits/", body)
    assert made.status == 201, made.json
    assert {name: made.json[name] for name in ("scope", "key", "model")} == {
        "scope": "tenant",
        "key": None,
        "model": "",
    }
    changed = olga.post("limits/", {**body, "value": 30})
    assert (changed.json["id"], changed.json["value"]) == (made.json["id"], 30)
    assert [each["value"] for each in alice.get("limits/").json["results"]] == [30]
    assert alice.delete(f"limits/{made.json['id']}/").status == 403
    assert olga.delete(f"limits/{made.json['id']}/").status == 204
    assert not Limit.objects.exists()
    assert {each.actor for each in AuditRecord.objects.filter(action__startswith="limit.")} == {"user:olga"}
    assert {each["action"] for each in alice.get("audit/").json["results"]} >= {"limit.set", "limit.clear"}


def test_limits_of_a_key_and_of_a_model(olga: Caller, alice: Caller, charlie: Caller) -> None:
    assert alice.tenant is not None and alice.key is not None and charlie.key is not None
    body = {"tenant": alice.tenant.pk, "kind": "concurrent", "value": 2}
    of_key = olga.post("limits/", {**body, "key": alice.key.public_id})
    of_model = olga.post("limits/", {**body, "model": "m"})
    assert (of_key.json["scope"], of_key.json["key"]) == ("key", alice.key.public_id)
    assert (of_model.json["scope"], of_model.json["model"]) == ("model", "m")
    assert olga.post("limits/", {**body, "key": charlie.key.public_id}).status == 404
    of_both = olga.post("limits/", {**body, "key": alice.key.public_id, "model": "m"})
    assert (of_both.status, of_both.error["param"]) == (400, "model") and "both" in of_both.error["message"]


def test_a_tenant_does_not_see_anothers(alice: Caller, charlie: Caller) -> None:
    assert charlie.tenant is not None
    theirs = set_limit(charlie.tenant, "concurrent", 3)
    assert alice.get("limits/").json["results"] == []
    assert alice.get(f"limits/{theirs.pk}/").status == 404
    assert alice.get(f"limits/?tenant={charlie.tenant.pk}").status == 404
    assert charlie.get(f"limits/{theirs.pk}/").json["value"] == 3


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"value": 0}, "value"),
        ({"value": 10**13}, "value"),
        ({"kind": "wishes"}, "kind"),
        ({"burst": 5}, "burst"),
        ({"tenant": None}, "tenant"),
    ],
)
def test_wrong_fields_are_named(olga: Caller, alice: Caller, change: dict[str, object], param: str) -> None:
    assert alice.tenant is not None
    body = {"tenant": alice.tenant.pk, "kind": "concurrent", "value": 5, **change}
    answer = olga.post("limits/", body)
    assert (answer.status, answer.error["param"]) == (400, param)
    assert not Limit.objects.exists()
