"""`x-ratelimit-*`, for limits that exist."""

import math

from quotas.outcomes import RateState


def rate_headers(rate: RateState | None) -> dict[str, str]:
    if rate is None:
        return {}
    return {
        "x-ratelimit-limit-requests": str(rate.limit),
        "x-ratelimit-remaining-requests": str(rate.remaining),
        "x-ratelimit-reset-requests": duration(rate.reset_s),
    }


def duration(seconds: float) -> str:
    """`12ms`, `1s`, `6m0s`, `1h0m0s`: rounded up, so that waiting this long is enough."""
    if seconds < 1:
        milliseconds = math.ceil(seconds * 1000)
        return f"{milliseconds}ms" if milliseconds < 1000 else "1s"
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
