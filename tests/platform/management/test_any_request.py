"""Whatever a client sends: no 5xx, and every answer is as the OpenAPI document says."""

from typing import Any

import pytest
import redis
import schemathesis.openapi
from django.core.wsgi import get_wsgi_application
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.specs.openapi import checks

from management_callers import Caller

MAX_EXAMPLES = 3
# What a tenant or a limit may be is more than the document can say; who gets in is test_access.py's.
NOT_ASKED = [
    checks.ignored_auth,
    checks.positive_data_acceptance,
    checks.negative_data_rejection,
    checks.use_after_free,
    checks.ensure_resource_availability,
]


def document() -> dict[str, Any]:
    """Without its security: credentials are ours, not drawn."""
    found: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    del found["components"]["securitySchemes"]
    for path in found["paths"].values():
        for operation in path.values():
            del operation["security"]
    return found


schema = schemathesis.openapi.from_dict(document())
schema.app = get_wsgi_application()

any_request = settings(
    max_examples=MAX_EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


@pytest.fixture(autouse=True)
def redis_is_there(store: redis.Redis) -> None:
    """Changes tell it of their epoch."""


@pytest.fixture
def cookies(olga: Caller) -> dict[str, str]:
    """Of Olga's browser, once she has seen a page."""
    olga.client.get("/admin/")
    return {name: morsel.value for name, morsel in olga.client.cookies.items()}


@schema.parametrize()
@any_request
def test_of_an_operator(case: Case, cookies: dict[str, str]) -> None:
    headers = {"X-CSRFToken": cookies["csrftoken"]}
    case.call_and_validate(headers=headers, cookies=cookies, excluded_checks=NOT_ASKED)


@schema.parametrize()
@any_request
def test_of_a_tenants_key(case: Case, alice: Caller) -> None:
    case.call_and_validate(headers=alice.headers, excluded_checks=NOT_ASKED)
