"""Batches in the database, without workers: what they would do is called, and when is said."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from api_keys.models import ApiKey
from api_keys.services import create_key
from batch_rows import new_batch, running_batch
from bulk import announcing
from bulk.execution import event_loop
from bulk.models import Batch
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
def stopped_loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process's event loop for tasks waits for no engine, and ends with the test."""
    monkeypatch.setattr(event_loop, "READY_CEILING_S", 0.0)
    yield
    event_loop.stop_loop_thread()


@pytest.fixture
def key(any_database: str) -> ApiKey:
    return key_of(create_tenant("Acme"))


def key_of(tenant: Tenant) -> ApiKey:
    return create_key(tenant, "bulk", scopes=["batch"])[0]


@pytest.fixture
def make_batch(any_database: str, settings: Any, tmp_path: Path, announced: Any) -> MakeBatch:
    """make_batch(key, 250): validated, unless told otherwise. No lease ends before a test says so."""
    settings.OCTAVO_BULK_LEASE_SECONDS = 600.0
    settings.STORAGES = {
        **settings.STORAGES,
        "files": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": str(tmp_path / "files")},
        },
    }

    def make(key: ApiKey, num_lines: int, *, is_valid: bool = True) -> Batch:
        return running_batch(key, num_lines) if is_valid else new_batch(key, num_lines)

    return make
