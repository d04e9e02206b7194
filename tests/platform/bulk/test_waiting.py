"""What becomes of a line that was refused: it waits for room, is tried again a few times, or fails."""

import pytest

from bulk.execution.waiting import DEFAULT_WAIT_S, MAX_FAULTS, Wait, wait_after
from inference_engine.contract.codes import Code
from tenants.errors import Denied


def after(code: Code, *, retry_after_s: float | None = None, num_faults: int = 0) -> Wait | None:
    return wait_after(Denied(code, "", retry_after_s=retry_after_s), num_faults, left_s=3600.0)


@pytest.mark.parametrize(
    "code",
    [
        Code.RATE_LIMIT_EXCEEDED,
        Code.CONCURRENCY_LIMIT_EXCEEDED,
        Code.QUEUE_FULL,
        Code.TENANT_QUEUE_FULL,
        Code.NO_READY_REPLICA,
        Code.STORE_UNAVAILABLE,
        Code.MAINTENANCE,
        Code.DRAINING,
    ],
)
def test_whoever_finds_no_room_waits_however_often(code: Code) -> None:
    assert after(code, retry_after_s=7.0, num_faults=MAX_FAULTS) == Wait(7.0)
    assert after(code) == Wait(DEFAULT_WAIT_S)


@pytest.mark.parametrize("code", [Code.ENGINE_LOST, Code.INTERNAL_ERROR, Code.NON_FINITE_LOGITS])
def test_an_attempt_that_breaks_off_is_repeated_a_few_times(code: Code) -> None:
    assert after(code, num_faults=MAX_FAULTS - 2) == Wait(DEFAULT_WAIT_S, is_fault=True)
    assert after(code, num_faults=MAX_FAULTS - 1) is None


def test_a_quota_is_waited_for_if_its_next_period_begins_in_time() -> None:
    assert after(Code.INSUFFICIENT_QUOTA, retry_after_s=600.0) == Wait(600.0)
    assert after(Code.INSUFFICIENT_QUOTA, retry_after_s=7200.0) is None
    assert after(Code.INSUFFICIENT_QUOTA) is None


@pytest.mark.parametrize(
    "code",
    [
        Code.INVALID_REQUEST,
        Code.MODEL_NOT_FOUND,
        Code.INVALID_API_KEY,
        Code.KV_POOL_EXCEEDED,
        Code.TENANT_KV_SHARE_EXCEEDED,
    ],
)
def test_what_will_not_get_better_fails_at_once(code: Code) -> None:
    assert after(code, retry_after_s=1.0) is None
