"""Paths and methods."""

import pytest

from gateway.health_endpoint import health
from gateway.models_endpoint import list_models, show_model
from gateway.responses.stored_endpoints import cancel_response, delete_response
from gateway.routes import find_endpoint
from inference_engine.contract.codes import Code
from tenants.errors import Denied


def test_paths_lead_to_endpoints() -> None:
    assert find_endpoint("GET", "/v1/models") is list_models
    assert find_endpoint("GET", "/v1/models/org/name/with/slashes") is show_model
    assert find_endpoint("HEAD", "/health") is health
    assert find_endpoint("DELETE", "/v1/responses/resp_1") is delete_response
    assert find_endpoint("POST", "/v1/responses/resp_1/cancel") is cancel_response


@pytest.mark.parametrize(
    "path",
    [
        "/v1",
        "/v1/",
        "/v1/models/",
        "/v1/chat",
        "/v1/chat/completions/",
        "/v2/models",
        "/v1/responses/",
        "/v1/responses/a/b",
    ],
)
def test_other_paths_lead_nowhere(path: str) -> None:
    with pytest.raises(Denied) as denied:
        find_endpoint("GET", path)
    assert denied.value.code is Code.NOT_FOUND


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("GET", "/v1/completions", "POST"), ("POST", "/v1/models/a", "GET"), ("PUT", "/health", "GET, HEAD")],
)
def test_other_methods_are_told_which_to_use(method: str, path: str, allowed: str) -> None:
    with pytest.raises(Denied) as denied:
        find_endpoint(method, path)
    assert denied.value.code is Code.METHOD_NOT_ALLOWED
    assert denied.value.headers["allow"] == allowed
