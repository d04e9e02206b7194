"""Batches and files on the admin's pages: progress to look at, and actions that go through the services."""

from typing import Any

import pytest
import redis
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from api_keys.models import ApiKey
from audit.models import AuditRecord
from batch_rows import ended_batch, running_batch
from bulk.models import Batch, BatchStatus, File, LineState

pytestmark = pytest.mark.usefixtures("transactional_db")
LIST = "admin:bulk_batch_changelist"


@pytest.fixture
def client(store: redis.Redis) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("olive"))
    return client


def act(client: Client, name: str, row: Batch | File) -> Any:
    page = f"admin:bulk_{row._meta.model_name}_changelist"
    return client.post(reverse(page), {"action": name, "_selected_action": [row.pk]}, follow=True)


def test_progress_rate_and_errors_are_shown(client: Client, key_and_secret: tuple[ApiKey, str]) -> None:
    batch = ended_batch(key_and_secret[0], LineState.ANSWERED, LineState.FAILED)
    page = client.get(reverse(LIST)).content.decode()
    assert batch.public_id in page
    assert "2 of 2" in page
    change = client.get(reverse("admin:bulk_batch_change", args=[batch.pk])).content.decode()
    assert batch.error_file is not None
    assert batch.error_file.public_id in change


def test_a_batch_is_cancelled(client: Client, key_and_secret: tuple[ApiKey, str]) -> None:
    batch = running_batch(key_and_secret[0], 2)
    assert "what is done is kept" in act(client, "cancel", batch).content.decode()
    batch.refresh_from_db()
    assert batch.status == BatchStatus.CANCELLING
    assert AuditRecord.objects.get(action="batch.cancel").actor == "user:olive"


def test_failed_lines_are_run_again_once_there_are_any(
    client: Client, key_and_secret: tuple[ApiKey, str]
) -> None:
    batch = running_batch(key_and_secret[0], 1)
    assert "There are no failed lines" in act(client, "retry", batch).content.decode()
    failed = ended_batch(key_and_secret[0], LineState.FAILED)
    act(client, "retry", failed)
    assert Batch.objects.filter(status=BatchStatus.VALIDATING).count() == 1


def test_a_file_is_deleted(client: Client, key_and_secret: tuple[ApiKey, str]) -> None:
    batch = ended_batch(key_and_secret[0], LineState.ANSWERED)
    act(client, "remove", batch.input_file)
    file = File.objects.get(pk=batch.input_file.pk)
    assert (file.storage_name, file.deleted_at is None) == ("", False)


def test_who_may_only_look_has_no_actions(store: redis.Redis, key_and_secret: tuple[ApiKey, str]) -> None:
    user = User.objects.create_user("vera", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_batch", "view_file"]))
    client = Client()
    client.force_login(user)
    batch = running_batch(key_and_secret[0], 1)
    assert client.get(reverse(LIST)).status_code == 200
    act(client, "cancel", batch)
    batch.refresh_from_db()
    assert batch.status == BatchStatus.IN_PROGRESS
