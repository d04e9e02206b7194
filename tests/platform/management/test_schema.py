"""The OpenAPI document: generated without a warning, and it tells of every answer."""

from io import StringIO
from typing import Any

import pytest
import yaml
from django.core.management import call_command

from management_callers import Caller


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    out = StringIO()
    call_command("spectacular", validate=True, fail_on_warn=True, stdout=out)
    loaded: dict[str, Any] = yaml.safe_load(out.getvalue())
    return loaded


def test_every_operation_says_who_may_and_how_it_can_fail(schema: dict[str, Any]) -> None:
    operations = [each for path in schema["paths"].values() for each in path.values()]
    assert len(operations) >= 20
    for operation in operations:
        assert {"managementKey": []} in operation["security"], operation["operationId"]
        assert {"400", "401", "403", "404", "405", "503"} <= set(operation["responses"])
        assert any(status.startswith("2") for status in operation["responses"])


def test_only_new_and_rotated_keys_have_a_secret(schema: dict[str, Any]) -> None:
    with_secret = {
        name
        for name, each in schema["components"]["schemas"].items()
        if "secret" in each.get("properties", {})
    }
    assert with_secret == {"KeyWithSecret"}
    assert "digest" not in str(schema)


def test_it_is_served_to_callers(alice: Caller) -> None:
    response = alice.client.get("/api/v1/schema/", headers=alice.headers)
    assert response.status_code == 200 and b"openapi: 3" in response.content
    assert alice.client.get("/api/v1/schema/").status_code == 401
