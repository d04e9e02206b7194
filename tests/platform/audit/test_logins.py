"""Logins, failed ones and logouts of the console, with the request they came with."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from audit.models import AuditRecord

PASSWORD = "correct horse battery"


@pytest.fixture
def client(transactional_db: None) -> Client:
    User.objects.create_superuser("alice", password=PASSWORD)
    return Client(REMOTE_ADDR="127.0.0.9")


def sessions() -> list[AuditRecord]:
    """Newest first."""
    return list(AuditRecord.objects.filter(action__startswith="session."))


def log_in(client: Client, username: str, password: str) -> str:
    response = client.post(reverse("admin:login"), {"username": username, "password": password})
    return response.headers["X-Request-Id"]


def test_login_and_logout_are_on_record(client: Client) -> None:
    request_id = log_in(client, "alice", PASSWORD)
    client.post(reverse("admin:logout"))
    logout, login = sessions()
    assert (login.actor, login.action, login.subject) == ("user:alice", "session.login", "user:alice")
    assert (login.request_id, login.address) == (request_id, "127.0.0.9")
    assert (logout.actor, logout.action) == ("user:alice", "session.logout")
    assert logout.request_id != request_id


def test_a_failed_login_is_on_record_without_its_password(client: Client) -> None:
    log_in(client, "alice", "hunter2 hunter2")
    (found,) = sessions()
    assert (found.actor, found.action, found.subject) == ("anonymous", "session.login_failed", "user:alice")
    assert "hunter2" not in str(list(AuditRecord.objects.values_list()))


def test_a_password_typed_as_a_name_is_not_written_down(client: Client) -> None:
    log_in(client, PASSWORD, "")
    log_in(client, PASSWORD, "alice")
    assert {record.subject for record in sessions()} == {"user:(unknown)"}
