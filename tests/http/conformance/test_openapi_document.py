"""Whatever a client makes of the OpenAPI document: no 5xx, and every answer is as the document says."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis.openapi
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.specs.openapi import checks

from gateway.openapi.document import document_of
from gateway.openapi.endpoint import VERSION
from gateway.openapi.listed import OPERATIONS
from http_service import Service

EXAMPLES = int(os.environ.get("CONFORMANCE_EXAMPLES", "4"))
# What a prompt or a schema may be is more than the document can say; keys are test_request_cases.py's.
NOT_ASKED = [
    checks.ignored_auth,
    checks.positive_data_acceptance,
    checks.negative_data_rejection,
    checks.use_after_free,
    checks.ensure_resource_availability,
]
CEILING_S = 60.0
FEW_TOKENS = {"max_tokens": 3, "max_completion_tokens": 3, "max_output_tokens": 3}


def document() -> dict[str, Any]:
    """Without its security: the key is ours, not drawn."""
    found = document_of(OPERATIONS, VERSION)
    del found["components"]["securitySchemes"]
    for path in found["paths"].values():
        for operation in path.values():
            del operation["security"]
    return found


schema = schemathesis.openapi.from_dict(document())

any_request = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


@pytest.fixture(scope="module")
def target(request: pytest.FixtureRequest) -> Iterator[Service]:
    service: Service = request.getfixturevalue("shared_service")
    yield service
    service.check_health()


def test_the_server_shows_this_document(target: Service) -> None:
    answer = target.http.get("/v1/openapi.json")
    assert answer.status_code == 200
    assert answer.json() == document_of(OPERATIONS, VERSION)


@schema.parametrize()
@any_request
def test_any_request_is_answered_as_documented(case: Case, target: Service) -> None:
    """Made-up models are unknown, so the served one takes their place; a few tokens show as much as many."""
    if isinstance(case.body, dict) and "model" in case.body:
        if isinstance(case.body["model"], str):
            case.body["model"] = target.model
        case.body |= {name: few for name, few in FEW_TOKENS.items() if isinstance(case.body.get(name), int)}
        case.body |= {name: few for name, few in FEW_TOKENS.items() if name in _limit_of(case)}
    headers = {**case.headers, "authorization": f"Bearer {target.key}"}
    case.call_and_validate(
        base_url=target.base_url, headers=headers, excluded_checks=NOT_ASKED, timeout=CEILING_S
    )


def _limit_of(case: Case) -> set[str]:
    """The field that keeps an answer short."""
    return {"max_output_tokens"} if "responses" in case.path else {"max_tokens"}
