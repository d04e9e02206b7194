"""Codes as statuses."""

import pytest

from gateway.errors import MAX_RETRY_AFTER_S, SHAPES, error_event, error_headers, error_object, internal_error
from inference_engine.contract.codes import Code
from tenants.errors import Denied


def test_every_code_has_a_status() -> None:
    assert set(SHAPES) == set(Code)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (Code.INVALID_JSON, 400),
        (Code.CONTEXT_LENGTH_EXCEEDED, 400),
        (Code.TENANT_KV_SHARE_EXCEEDED, 400),
        (Code.INVALID_API_KEY, 401),
        (Code.INSUFFICIENT_PERMISSIONS, 403),
        (Code.MODEL_NOT_FOUND, 404),
        (Code.BODY_TOO_LARGE, 413),
        (Code.QUEUE_TIMEOUT, 408),
        (Code.RATE_LIMIT_EXCEEDED, 429),
        (Code.TENANT_QUEUE_FULL, 429),
        (Code.INSUFFICIENT_QUOTA, 429),
        (Code.INTERNAL_ERROR, 500),
        (Code.NO_READY_REPLICA, 503),
        (Code.STORE_UNAVAILABLE, 503),
    ],
)
def test_statuses_that_clients_rely_on(code: Code, status: int) -> None:
    assert SHAPES[code].status == status


def test_a_spent_quota_is_not_to_be_tried_again() -> None:
    headers = error_headers(Denied(Code.INSUFFICIENT_QUOTA, "Spent.", retry_after_s=5))
    assert headers == {"x-should-retry": "false"}


def test_a_tenants_own_full_queue_is_tried_again_soon_and_its_part_of_the_pool_never() -> None:
    full = Denied(Code.TENANT_QUEUE_FULL, "9 requests of this tenant are waiting already")
    headers = error_headers(full)
    assert (headers["x-should-retry"], headers["retry-after"]) == ("true", "1")
    error = error_object(full)["error"]
    assert isinstance(error, dict)
    assert (error["type"], error["code"]) == ("rate_limit_error", "tenant_queue_full")
    too_large = Denied(Code.TENANT_KV_SHARE_EXCEEDED, "", param="prompt_ids")
    assert error_headers(too_large) == {"x-should-retry": "false"}
    assert SHAPES[too_large.code].type == "invalid_request_error"


def test_nobody_is_told_to_wait_for_longer_than_clients_do() -> None:
    headers = error_headers(Denied(Code.RATE_LIMIT_EXCEEDED, "Later.", retry_after_s=4000))
    assert headers["retry-after"] == str(int(MAX_RETRY_AFTER_S))


@pytest.mark.parametrize("code", [code for code in Code if SHAPES[code].status >= 500])
def test_what_is_our_fault_may_be_tried_again(code: Code) -> None:
    assert SHAPES[code].should_retry


def test_an_error_event() -> None:
    event = error_event(Denied(Code.ENGINE_LOST, "Gone.", param=None))
    assert event.startswith(b'data: {"error":{"message":"Gone."') and event.endswith(b"}}\n\n")


def test_our_own_faults_are_not_described() -> None:
    assert error_object(internal_error())["error"]["code"] == "internal_error"
