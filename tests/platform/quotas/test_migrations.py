"""Limits that were columns of tenants and keys become rows, and columns again on the way back."""

from collections.abc import Iterator

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.state import StateApps

BEFORE: list[tuple[str, str | None]] = [
    ("quotas", None),
    ("api_keys", "0002_scopes"),
    ("tenants", "0002_policy"),
]


def migrate(targets: list[tuple[str, str | None]]) -> StateApps:
    executor = MigrationExecutor(connection)
    executor.migrate(targets)  # type: ignore[arg-type]
    return executor.loader.project_state([each for each in targets if each[1]]).apps  # type: ignore[misc]


def newest() -> list[tuple[str, str | None]]:
    leaves = MigrationExecutor(connection).loader.graph.leaf_nodes()
    return [each for each in leaves if each[0] in {"quotas", "api_keys", "tenants"}]


@pytest.fixture
def old_apps(any_database: str) -> Iterator[StateApps]:
    yield migrate(BEFORE)
    migrate(newest())


def test_columns_become_limits_and_limits_columns(old_apps: StateApps) -> None:
    tenants = old_apps.get_model("tenants", "Tenant").objects
    both = tenants.create(name="Both", slug="both", max_concurrent=3, requests_per_minute=60)
    none = tenants.create(name="None", slug="none")
    keys = old_apps.get_model("api_keys", "ApiKey").objects
    key = keys.create(public_id="k", digest=b"d", name="k", tenant=none, max_concurrent=2)

    apps = migrate(newest())
    limits = apps.get_model("quotas", "Limit").objects
    assert set(limits.values_list("scope", "tenant_id", "key_id", "kind", "value")) == {
        ("tenant", both.pk, None, "concurrent", 3),
        ("tenant", both.pk, None, "requests_per_minute", 60),
        ("key", none.pk, key.pk, "concurrent", 2),
    }
    limits.filter(tenant_id=both.pk, kind="concurrent").update(value=4)

    apps = migrate(BEFORE)
    old = apps.get_model("tenants", "Tenant").objects
    assert set(old.values_list("slug", "max_concurrent", "requests_per_minute")) == {
        ("both", 4, 60),
        ("none", None, None),
    }
    assert apps.get_model("api_keys", "ApiKey").objects.get().max_concurrent == 2
