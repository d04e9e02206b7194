"""Changes of operators, by whatever page or command, are on record; their passwords are not."""

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from audit.models import AuditRecord

PASSWORD = "correct horse battery"


@pytest.fixture
def client(transactional_db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("alice"))
    return client


def records() -> list[AuditRecord]:
    """Of changes, oldest first, without Alice's own making."""
    found = AuditRecord.objects.filter(action__startswith="operator.").order_by("id")
    return list(found.exclude(subject="user:alice"))


def test_a_page_that_makes_and_changes_an_operator(client: Client) -> None:
    form = {"username": "vera", "password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}
    client.post(reverse("admin:auth_user_add"), form)
    vera = User.objects.get(username="vera")
    permission = Permission.objects.get(codename="view_tenant")
    form = {"username": "vera", "is_active": "on", "is_staff": "on", "user_permissions": [permission.pk]}
    form |= {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    client.post(reverse("admin:auth_user_change", args=[vera.pk]), form)

    created, changed, granted = records()
    assert {each.actor for each in (created, changed, granted)} == {"user:alice"}
    assert (created.action, created.subject) == ("operator.create", "user:vera")
    assert (changed.before, changed.after) == ({"is_staff": False}, {"is_staff": True})
    assert granted.action == "operator.grant"
    assert granted.after == {"user_permissions": [str(permission)]}


def test_a_new_password_is_told_of_and_not_told(client: Client) -> None:
    vera = User.objects.create_user("vera", password="something else")
    form = {"password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}
    client.post(reverse("admin:auth_user_password_change", args=[vera.pk]), form)
    vera.refresh_from_db()
    assert vera.check_password(PASSWORD)
    changed = records()[-1]
    assert (changed.action, changed.actor) == ("operator.update", "user:alice")
    assert (changed.before, changed.after) == ({"password": "[hidden]"}, {"password": "[hidden]"})
    assert vera.password not in str(list(AuditRecord.objects.values_list()))


def test_groups_powers_taken_away_and_deletion(client: Client) -> None:
    vera = User.objects.create_user("vera")
    group = Group.objects.create(name="support")
    group.user_set.add(vera)
    vera.groups.remove(group)
    vera.user_permissions.clear()
    client.post(reverse("admin:auth_user_delete", args=[vera.pk]), {"post": "yes"})
    told = [(each.action, each.after) for each in records()]
    assert told[1:] == [
        ("operator.grant", {"groups": ["support"]}),
        ("operator.withdraw", {"groups": ["support"]}),
        ("operator.withdraw", {"user_permissions": ["all"]}),
        ("operator.delete", None),
    ]
    assert records()[-1].actor == "user:alice"


def test_commands_are_told_of_too(transactional_db: None) -> None:
    call_command("create_operator", username="olga")
    call_command("create_operator", username="olga", new_password=True)
    assert [(each.actor, each.action) for each in records()] == [
        ("command line", "operator.create"),
        ("command line", "operator.update"),
    ]


def test_logging_in_changes_nobody(client: Client) -> None:
    num_before = len(AuditRecord.objects.filter(subject="user:alice", action__startswith="operator."))
    Client().force_login(User.objects.get(username="alice"))
    assert AuditRecord.objects.filter(action="operator.update").count() == 0
    assert num_before == 1
