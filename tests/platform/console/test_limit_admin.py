"""Limits and secrets on the admin's pages: by the services, and with what is wrong shown in the form."""

import re

import pytest
import redis
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from api_keys.models import ApiKey
from api_keys.services import create_key, revoke_key
from audit.models import AuditRecord
from quotas.models import Limit
from quotas.services import set_limit
from tenants.models import Tenant
from tenants.services import create_tenant

pytestmark = pytest.mark.usefixtures("transactional_db")

ADD = "admin:quotas_limit_add"


@pytest.fixture
def client(store: redis.Redis) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("alice"))
    return client


def form_of(tenant: Tenant, **changes: object) -> dict[str, object]:
    return {
        "tenant": tenant.pk,
        "key": "",
        "model": "",
        "kind": "concurrent",
        "value": 5,
        "burst": "",
        **changes,
    }


def limits() -> set[tuple[object, ...]]:
    return set(Limit.objects.values_list("scope", "kind", "model", "value", "burst"))


def test_limits_are_made_changed_and_cleared_by_the_services(
    client: Client, tenant: Tenant, key_and_secret: tuple[ApiKey, str]
) -> None:
    for changes in ({}, {"key": key_and_secret[0].pk}, {"model": "m", "kind": "tokens_per_day"}):
        assert client.post(reverse(ADD), form_of(tenant, **changes)).status_code == 302
    assert {each[0] for each in limits()} == {"tenant", "key", "model"}

    of_tenant = Limit.objects.get(scope="tenant")
    page = reverse("admin:quotas_limit_change", args=[of_tenant.pk])
    assert client.post(page, {"value": 7, "burst": "", "kind": "queued"}).status_code == 302
    assert ("tenant", "concurrent", "", 7, None) in limits()

    client.post(reverse("admin:quotas_limit_delete", args=[of_tenant.pk]), {"post": "yes"})
    rest = [each.pk for each in Limit.objects.all()]
    chosen = {"action": "delete_selected", "_selected_action": rest, "post": "yes"}
    client.post(reverse("admin:quotas_limit_changelist"), chosen)
    assert limits() == set()
    actions = AuditRecord.objects.filter(action__startswith="limit.").values_list("actor", "action")
    assert list(actions) == [("user:alice", "limit.clear")] * 3 + [("user:alice", "limit.set")] * 4
    tenant.refresh_from_db()
    assert tenant.policy_epoch == 8


def test_what_is_wrong_is_shown_in_the_form(
    client: Client, tenant: Tenant, key_and_secret: tuple[ApiKey, str]
) -> None:
    other, _ = create_key(create_tenant("Rival"), "k")
    for changes in (
        {"value": 0},
        {"burst": 3},
        {"key": other.pk},
        {"key": key_and_secret[0].pk, "model": "m"},
        {"kind": "queued", "model": "m"},
    ):
        assert client.post(reverse(ADD), form_of(tenant, **changes)).status_code == 200, changes
    assert limits() == set()


def test_a_limit_that_exists_is_changed(client: Client, tenant: Tenant) -> None:
    set_limit(tenant, "concurrent", 3)
    client.post(reverse(ADD), form_of(tenant))
    assert limits() == {("tenant", "concurrent", "", 5, None)}


def test_a_new_secret_is_asked_for_and_shown_once(client: Client, key_and_secret: tuple[ApiKey, str]) -> None:
    key, plaintext = key_and_secret
    page = reverse("admin:api_keys_apikey_rotate", args=[key.pk])
    assert client.get(page).status_code == 200
    assert client.post(page, {"grace_seconds": "12"}).status_code == 200
    key.refresh_from_db()
    digest = bytes(key.digest)

    response = client.post(page, {"grace_seconds": "3600"})
    assert "no-store" in response["Cache-Control"]
    (shown,) = set(re.findall(r"octavo_[a-z0-9]+_[0-9a-f]{64}", response.content.decode()))
    assert shown != plaintext
    key.refresh_from_db()
    assert key.previous_digest is not None and bytes(key.previous_digest) == digest != bytes(key.digest)
    assert AuditRecord.objects.filter(action="api_key.rotate", actor="user:alice").count() == 1

    revoke_key(key)
    response = client.post(page, {"grace_seconds": "0"})
    assert response.status_code == 302


def test_the_tenants_page_leads_to_its_limits_and_its_ledger(client: Client, tenant: Tenant) -> None:
    for name, end in (("new_limit", f"?tenant={tenant.pk}"), ("ledger", f"?tenant_id__exact={tenant.pk}")):
        response = client.get(reverse(f"admin:tenants_tenant_{name}", args=[tenant.pk]))
        assert response["Location"].endswith(end)
        assert client.get(response["Location"]).status_code == 200
