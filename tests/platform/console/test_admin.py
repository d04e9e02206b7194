"""The console through a browser's eyes: what operators can do, and what they never see."""

import re

import pytest
import redis
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from api_keys.models import ApiKey
from api_keys.secrets_format import parse_authorization
from audit.models import AuditRecord
from quotas.models import Limit
from quotas.services import set_limit
from tenants.models import Tenant
from tenants.shards import epoch_key
from usage.models import Ending, LedgerEntry, Source

pytestmark = pytest.mark.usefixtures("transactional_db")


@pytest.fixture
def client(store: redis.Redis) -> Client:
    operator = User.objects.create_superuser("alice")
    client = Client()
    client.force_login(operator)
    return client


def test_what_a_page_links_to_is_served(client: Client) -> None:
    links = set(
        re.findall(r'(?:src|href)="(/static/[^"?]+)', client.get(reverse("admin:index")).content.decode())
    )
    assert len(links) > 5
    for link in links:
        response = client.get(link)
        assert response.status_code == 200 and response.getvalue(), link
    assert client.get("/static/nothing.js").status_code == 404


TENANT_FORM = {
    "name": "Acme",
    "slug": "acme",
    "status": "active",
    "service_class": "standard",
    "weight": "1",
    "default_output_tokens": "",
    "max_context_tokens": "",
    "model_aliases": "{}",
    "features": "",
    "queue_timeout_seconds": "",
    "time_zone": "UTC",
    "allowed_models": "",
    "max_output_tokens": "",
}


KEY_FORM = {
    "name": "k",
    "scopes": ["inference"],
    "expires_at_0": "",
    "expires_at_1": "",
    "allowed_models": "",
}


def test_every_page_opens(client: Client, key_and_secret: tuple[ApiKey, str]) -> None:
    LedgerEntry.objects.create(
        request_id="r1",
        tenant_id=1,
        tenant_name="Acme",
        key_id="k",
        key_name="k",
        model="m",
        endpoint="/v1/completions",
        admitted_at=timezone.now(),
        finished_at=timezone.now(),
        ending=Ending.FINISHED,
        source=Source.AUTHORITATIVE,
    )
    pages = [reverse("admin:index"), reverse("workers")]
    set_limit(key_and_secret[0].tenant, "concurrent", 5, key=key_and_secret[0])
    shown = ("tenants_tenant", "api_keys_apikey", "quotas_limit", "auth_user")
    for model in (*shown, "usage_ledgerentry", "usage_hourlyusage", "usage_dailyusage", "audit_auditrecord"):
        pages.append(reverse(f"admin:{model}_changelist"))
    pages += [reverse(f"admin:{model}_add") for model in shown]
    pages += [f"{reverse('admin:audit_auditrecord_changelist')}?what=tenant&q=user:alice"]
    pages += [f"{reverse('admin:usage_dailyusage_changelist')}?q={word}" for word in ("abc", "7", "9" * 30)]
    for found in (
        key_and_secret[0],
        key_and_secret[0].tenant,
        LedgerEntry.objects.get(),
        Limit.objects.get(),
        AuditRecord.objects.first(),
    ):
        assert found is not None
        pages.append(
            reverse(f"admin:{found._meta.app_label}_{found._meta.model_name}_change", args=[found.pk])
        )
    for page in pages:
        response = client.get(page)
        assert response.status_code == 200, page
        assert "unsafe-eval" in response["Content-Security-Policy"]
        assert key_and_secret[0].digest.hex() not in response.content.decode()


def test_nobody_gets_in_without_logging_in(client: Client) -> None:
    for name in ("admin:index", "workers", "admin:tenants_tenant_changelist"):
        response = Client().get(reverse(name))
        assert response.status_code == 302 and "/admin/login/" in response["Location"]
    response = Client().get("/nowhere")
    assert response.status_code == 404 and "unsafe-eval" not in response["Content-Security-Policy"]


def test_a_tenant_is_made_and_changed_by_the_services(client: Client, store: redis.Redis) -> None:
    response = client.post(reverse("admin:tenants_tenant_add"), TENANT_FORM)
    assert response.status_code == 302, response.content.decode()
    tenant = Tenant.objects.get()
    response = client.post(
        reverse("admin:tenants_tenant_change", args=[tenant.pk]),
        {**TENANT_FORM, "max_output_tokens": "5", "allowed_models": '["m"]'},
    )
    assert response.status_code == 302
    tenant.refresh_from_db()
    assert (tenant.max_output_tokens, tenant.allowed_models, tenant.policy_epoch) == (5, ["m"], 2)
    assert store.get(epoch_key(tenant.pk)) == b"2"
    assert list(AuditRecord.objects.values_list("actor", "action")) == [
        ("user:alice", "tenant.update"),
        ("user:alice", "tenant.create"),
        ("user:alice", "session.login"),
        ("command line", "operator.create"),
    ]


@pytest.mark.parametrize("wrong", [{"allowed_models": '"m"'}, {"weight": "0"}, {"max_output_tokens": "0"}])
def test_a_wrong_field_is_shown_in_the_form(client: Client, wrong: dict[str, str]) -> None:
    response = client.post(reverse("admin:tenants_tenant_add"), {**TENANT_FORM, **wrong})
    assert response.status_code == 200 and not Tenant.objects.exists()


def test_tenants_are_suspended_and_activated(client: Client, tenant: Tenant, store: redis.Redis) -> None:
    page = reverse("admin:tenants_tenant_changelist")
    for act, status in (("suspend", "suspended"), ("activate", "active")):
        client.post(page, {"action": act, "_selected_action": [tenant.pk]})
        tenant.refresh_from_db()
        assert tenant.status == status
    assert tenant.policy_epoch == 3


def test_a_new_keys_secret_is_in_one_answer_and_nowhere_else(client: Client, tenant: Tenant) -> None:
    response = client.post(reverse("admin:api_keys_apikey_add"), {**KEY_FORM, "tenant": tenant.pk})
    assert response.status_code == 200 and "no-store" in response["Cache-Control"]
    (plaintext,) = set(re.findall(r"octavo_[a-z0-9]+_[0-9a-f]{64}", response.content.decode()))
    key = ApiKey.objects.get()
    presented = parse_authorization(f"Bearer {plaintext}")
    assert presented is not None and presented == (key.public_id, bytes(key.digest))

    secret = plaintext.split("_")[2]
    assert secret not in str(client.cookies) and secret not in str(dict(client.session))
    for page in ("admin:api_keys_apikey_changelist", "admin:audit_auditrecord_changelist", "admin:index"):
        assert secret not in client.get(reverse(page)).content.decode()


def test_the_tenants_page_leads_to_a_new_key_for_it(client: Client, tenant: Tenant) -> None:
    page = reverse("admin:tenants_tenant_change", args=[tenant.pk])
    link = reverse("admin:tenants_tenant_new_key", args=[tenant.pk])
    assert link in client.get(page).content.decode()
    assert client.get(link)["Location"].endswith(f"?tenant={tenant.pk}")


def test_a_key_is_revoked(client: Client, key_and_secret: tuple[ApiKey, str]) -> None:
    key = key_and_secret[0]
    client.post(
        reverse("admin:api_keys_apikey_changelist"), {"action": "revoke", "_selected_action": [key.pk]}
    )
    key.refresh_from_db()
    assert key.revoked_at is not None
    assert AuditRecord.objects.filter(action="api_key.revoke", actor="user:alice").exists()


@pytest.mark.parametrize("chosen", ["x", "", "1.5", "\x00", "9" * 30, "٣"])
@pytest.mark.parametrize(
    ("page", "action"),
    [("api_keys_apikey", "revoke"), ("tenants_tenant", "suspend"), ("auth_user", "delete_selected")],
)
def test_what_no_row_can_be_called_chooses_none(
    client: Client, key_and_secret: tuple[ApiKey, str], page: str, action: str, chosen: str
) -> None:
    form = {"action": action, "_selected_action": [chosen]}
    assert client.post(reverse(f"admin:{page}_changelist"), form).status_code == 302
    key = key_and_secret[0]
    key.refresh_from_db()
    assert key.is_usable and key.tenant.status == "active"


def test_a_keys_tenant_is_for_good(client: Client, key_and_secret: tuple[ApiKey, str]) -> None:
    key = key_and_secret[0]
    tenant_id = key.tenant_id
    form = {**KEY_FORM, "tenant": 999, "name": "renamed", "scopes": ["inference", "batch"]}
    response = client.post(reverse("admin:api_keys_apikey_change", args=[key.pk]), form)
    assert response.status_code == 302
    key.refresh_from_db()
    assert (key.name, key.scopes) == ("renamed", ["inference", "batch"])
    assert key.tenant_id == tenant_id


def test_nothing_that_the_ledger_speaks_of_is_deleted_or_edited(
    client: Client, key_and_secret: tuple[ApiKey, str]
) -> None:
    key = key_and_secret[0]
    for path in (
        reverse("admin:tenants_tenant_delete", args=[key.tenant_id]),
        reverse("admin:api_keys_apikey_delete", args=[key.pk]),
        reverse("admin:usage_ledgerentry_add"),
        reverse("admin:audit_auditrecord_add"),
    ):
        assert client.post(path, {"post": "yes"}).status_code == 403
    assert ApiKey.objects.exists() and Tenant.objects.exists()
