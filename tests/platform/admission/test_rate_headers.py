import pytest

from admission.rate_headers import duration, rate_headers
from quotas.outcomes import RateState, RateStates


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0ms"),
        (0.0001, "1ms"),
        (0.012, "12ms"),
        (0.9991, "1s"),
        (1.0, "1s"),
        (1.2, "2s"),
        (59.5, "1m0s"),
        (360, "6m0s"),
        (3600, "1h0m0s"),
        (3725, "1h2m5s"),
    ],
)
def test_durations_round_up(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_headers_only_for_limits_that_exist() -> None:
    assert rate_headers(RateStates()) == {}
    assert rate_headers(RateStates(requests=RateState(limit=60, remaining=5, reset_s=0.5))) == {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "5",
        "x-ratelimit-reset-requests": "500ms",
    }


def test_tokens_have_headers_of_their_own() -> None:
    assert rate_headers(RateStates(tokens=RateState(limit=1000, remaining=0, reset_s=360))) == {
        "x-ratelimit-limit-tokens": "1000",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "6m0s",
    }
