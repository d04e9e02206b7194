"""`x-ratelimit-*`, for limits that exist."""

import math

from quotas.outcomes import RateStates


def rate_headers(rates: RateStates) -> dict[str, str]:
    headers = {}
    for unit, state in (("requests", rates.requests), ("tokens", rates.tokens)):
        if state is not None:
            headers[f"x-ratelimit-limit-{unit}"] = str(state.limit)
            headers[f"x-ratelimit-remaining-{unit}"] = str(state.remaining)
            headers[f"x-ratelimit-reset-{unit}"] = duration(state.reset_s)
    return headers


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
