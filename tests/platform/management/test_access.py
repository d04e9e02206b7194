"""Who gets in, and as whom."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.db import DatabaseError, connection
from django.test import Client
from django.utils import timezone

from api_keys.models import ApiKey
from api_keys.services import revoke_key, rotate_key, update_key
from audit.models import AuditRecord
from management_callers import Caller
from tenants.models import Tenant
from tenants.services import activate_tenant, suspend_tenant

KEYS = "/api/v1/keys/"


def status_with(authorization: str) -> int:
    return Client().get(KEYS, headers={"Authorization": authorization}).status_code


def test_a_management_key_gets_in(alice: Caller) -> None:
    assert alice.get("keys/").status == 200


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Basic b2xnYTpvbGdh", "Bearer octavo_x_y", "Bearer \u00e9", "Bearer " + "x" * 9000],
)
def test_whatever_is_no_key_is_told_so(tenant: Tenant, authorization: str) -> None:
    response = Client().get(KEYS, headers={"Authorization": authorization})
    assert (response.status_code, response.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert response.json()["error"]["code"] == "invalid_api_key"


def test_nobody_gets_in_with_nothing(tenant: Tenant) -> None:
    response = Client().get(KEYS)
    assert response.status_code == 401
    error = response.json()["error"]
    assert (error["type"], error["param"], error["code"]) == (
        "invalid_request_error",
        None,
        "invalid_api_key",
    )


def test_a_wrong_secret_of_a_known_key(alice: Caller) -> None:
    assert alice.key is not None
    assert status_with(f"Bearer octavo_{alice.key.public_id}_{'0' * 64}") == 401


def test_a_key_for_inference_is_not_for_management(key_and_secret: tuple[ApiKey, str]) -> None:
    response = Client().get(KEYS, headers={"Authorization": f"Bearer {key_and_secret[1]}"})
    assert response.status_code == 403
    assert response.json()["error"]["code"] == "insufficient_permissions"


def test_a_revoked_or_expired_key_is_refused_on_its_next_request(alice: Caller, bob: Caller) -> None:
    assert alice.key is not None and bob.key is not None
    revoke_key(alice.key)
    update_key(bob.key, expires_at=timezone.now() - timedelta(seconds=1))
    assert [alice.get("keys/").status, bob.get("keys/").status] == [401, 401]


def test_a_key_is_used_from_its_networks_only(alice: Caller, bob: Caller) -> None:
    assert alice.key is not None
    path = f"keys/{alice.key.public_id}/"
    assert bob.patch(path, {"allowed_networks": ["nowhere"]}).error["param"] == "allowed_networks"
    assert bob.patch(path, {"allowed_networks": ["10.0.0.0/8"]}).json["allowed_networks"] == ["10.0.0.0/8"]
    assert alice.get("keys/").error["code"] == "insufficient_permissions"
    assert bob.patch(path, {"allowed_networks": ["127.0.0.0/8"]}).status == 200
    assert alice.get("keys/").status == 200


def test_a_suspended_tenants_keys_are_refused(alice: Caller) -> None:
    assert alice.tenant is not None
    suspend_tenant(alice.tenant)
    assert alice.get("keys/").status == 403
    activate_tenant(alice.tenant)
    assert alice.get("keys/").status == 200


def test_both_secrets_are_good_during_grace(alice: Caller) -> None:
    assert alice.key is not None
    _, plaintext = rotate_key(alice.key, grace=timedelta(hours=1))
    assert [alice.get("keys/").status, status_with(f"Bearer {plaintext}")] == [200, 200]
    rotate_key(alice.key)
    assert [alice.get("keys/").status, status_with(f"Bearer {plaintext}")] == [401, 401]


def test_a_keys_session_cookie_does_not_matter(alice: Caller, olga: Caller) -> None:
    response = olga.client.get(KEYS, headers={"Authorization": "Bearer octavo_a_b"})
    assert response.status_code == 401


def test_a_session_needs_a_csrf_token_to_change_anything(olga: Caller) -> None:
    client = Client(enforce_csrf_checks=True)
    client.cookies = olga.client.cookies
    body = {"name": "New"}
    response = client.post("/api/v1/tenants/", body, content_type="application/json")
    assert response.status_code == 403 and "CSRF" in response.json()["error"]["message"]
    assert not Tenant.objects.filter(name="New").exists()

    client.get("/admin/")
    token = client.cookies["csrftoken"].value
    response = client.post(
        "/api/v1/tenants/", body, content_type="application/json", headers={"X-CSRFToken": token}
    )
    assert response.status_code == 201


def test_a_key_needs_none(alice: Caller) -> None:
    client = Client(enforce_csrf_checks=True)
    response = client.post(KEYS, {"name": "k"}, content_type="application/json", headers=alice.headers)
    assert response.status_code == 201


def test_people_do_what_their_permissions_say(tenant: Tenant) -> None:
    user = User.objects.create_user("vera", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_tenant"))
    client = Client()
    client.force_login(user)
    assert client.get("/api/v1/tenants/").status_code == 200
    assert client.get(KEYS).status_code == 403
    assert client.post(f"/api/v1/tenants/{tenant.pk}/suspend/").status_code == 403
    User.objects.filter(pk=user.pk).update(is_staff=False)
    assert client.get("/api/v1/tenants/").status_code in {401, 403}
    assert client.get("/api/v1/schema/").status_code in {401, 403}


def test_a_tenant_does_not_set_its_own_policy(alice: Caller) -> None:
    assert alice.tenant is not None
    mine = f"tenants/{alice.tenant.pk}/"
    limit = {"tenant": alice.tenant.pk, "kind": "concurrent", "value": 5}
    for answer in (
        alice.patch(mine, {"weight": 100}),
        alice.post(f"{mine}suspend/"),
        alice.post("tenants/", {"name": "Other"}),
        alice.post("limits/", limit),
    ):
        assert (answer.status, answer.error["code"]) == (403, "insufficient_permissions")
    alice.tenant.refresh_from_db()
    assert (alice.tenant.weight, Tenant.objects.count()) == (1.0, 1)


def test_changes_are_on_record_with_the_key_that_made_them(alice: Caller) -> None:
    assert alice.key is not None
    created = alice.post("keys/", {"name": "k"})
    found = AuditRecord.objects.get(action="api_key.create", subject=f"api_key:{created.json['id']}")
    assert found.actor == f"api_key:{alice.key.public_id}"
    assert found.request_id == created.headers["X-Request-Id"]
    assert found.tenant_id == alice.key.tenant_id


def test_a_database_that_is_away_is_503(alice: Caller) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE api_keys_apikey RENAME TO away")
    try:
        with pytest.raises(DatabaseError):
            ApiKey.objects.count()
        answer = alice.get("keys/")
        assert (answer.status, answer.error["code"]) == (503, "store_unavailable")
        assert answer.headers["Retry-After"] == "1"
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE away RENAME TO api_keys_apikey")
