"""/api/v1/audit/: read only; a tenant sees what concerns it."""

from management_callers import Caller


def subjects(caller: Caller, query: str = "") -> set[str]:
    return {each["subject"] for each in caller.get(f"audit/?{query}").json["results"]}


def test_a_tenant_sees_what_concerns_it(alice: Caller, charlie: Caller, olga: Caller) -> None:
    assert alice.key is not None and alice.tenant is not None and charlie.key is not None
    mine = {f"tenant:{alice.tenant.pk}", f"api_key:{alice.key.public_id}"}
    assert subjects(alice) == mine
    assert f"api_key:{charlie.key.public_id}" in subjects(olga) and "user:olga" in subjects(olga)
    theirs = next(each["id"] for each in charlie.get("audit/").json["results"])
    assert alice.get(f"audit/{theirs}/").status == 404
    assert charlie.get(f"audit/{theirs}/").status == 200
    assert alice.get(f"audit/?tenant={charlie.key.tenant_id}").status == 404


def test_filters(alice: Caller, olga: Caller) -> None:
    assert alice.tenant is not None
    assert subjects(olga, "actor=user:olga") == {"user:olga"}
    assert subjects(olga, "action=tenant.create") == {f"tenant:{alice.tenant.pk}"}
    assert subjects(olga, f"subject=tenant:{alice.tenant.pk}") == {f"tenant:{alice.tenant.pk}"}
    assert subjects(olga, "until=2020-01-01T00:00:00Z") == set()
    assert "user:olga" in subjects(olga, "since=2020-01-01T00:00:00Z")
    assert olga.get("audit/?who=olga").error["param"] == "who"


def test_it_is_read_only(olga: Caller) -> None:
    record = olga.get("audit/").json["results"][0]
    assert len(record["hash"]) == 64
    for method in ("post", "patch", "put", "delete"):
        assert olga.call(method, f"audit/{record['id']}/").status == 405
        assert olga.call(method, "audit/").status == 405
