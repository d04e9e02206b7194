"""Batches in the database, without workers: what they would do is called, and when is said."""

import io
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from api_keys.models import ApiKey
from api_keys.services import create_key
from bulk import announcing
from bulk.batches.validation import validate_batch
from bulk.files.services import store_file
from bulk.models import Batch, Purpose
from tenants.models import Tenant
from tenants.services import create_tenant

MakeBatch = Callable[..., Batch]


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, int]]]:
    """What the workers are told, in place of a broker."""
    told: list[tuple[str, int]] = []

    def tell(task: str, number: int) -> bool:
        told.append((task, number))
        return True

    monkeypatch.setattr(announcing, "_announce", tell)
    yield told


@pytest.fixture
def key(any_database: str) -> ApiKey:
    return key_of(create_tenant("Acme"))


def key_of(tenant: Tenant) -> ApiKey:
    return create_key(tenant, "bulk", scopes=["batch"])[0]


@pytest.fixture
def make_batch(any_database: str, settings: Any, tmp_path: Path, announced: Any) -> MakeBatch:
    """make_batch(key, 250): validated, unless told otherwise."""
    settings.STORAGES = {
        **settings.STORAGES,
        "files": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": str(tmp_path / "files")},
        },
    }

    def make(key: ApiKey, num_lines: int, *, is_valid: bool = True) -> Batch:
        content = io.BytesIO(b"".join(line(number) for number in range(num_lines)))
        file = store_file(key.tenant_id, key.public_id, "in.jsonl", Purpose.BATCH, content)
        batch = Batch.objects.create(
            tenant=key.tenant,
            api_key=key,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            input_file=file,
            expires_at=timezone.now() + timedelta(hours=24),
        )
        if is_valid:
            assert validate_batch(batch.pk)
            batch.refresh_from_db()
        return batch

    return make


def line(number: int) -> bytes:
    body = {"model": "m", "messages": []}
    whole = {"custom_id": f"r{number}", "method": "POST", "url": "/v1/chat/completions", "body": body}
    return json.dumps(whole).encode() + b"\n"
