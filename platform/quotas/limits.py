"""What a request is measured against: the same limits for each of its scopes."""

from dataclasses import dataclass

from django.conf import settings

SCOPES = ("tenant", "key")
NO_LIMIT = -1
"""In arguments of scripts."""


@dataclass(frozen=True, slots=True)
class ScopeLimits:
    """None: unlimited."""

    max_concurrent: int | None = None
    requests_per_minute: int | None = None

    def arguments(self) -> tuple[int, int, int]:
        """Max concurrent, requests/min, burst, as lua/reserve.lua takes them."""
        per_minute = self.requests_per_minute
        burst = max(1, round((per_minute or 0) * settings.OCTAVO_RATE_BURST_FRACTION))
        return (
            NO_LIMIT if self.max_concurrent is None else self.max_concurrent,
            NO_LIMIT if per_minute is None else per_minute,
            burst,
        )


@dataclass(frozen=True, slots=True)
class Policy:
    """What a reservation is measured against, and the epoch it is from."""

    epoch: int
    tenant: ScopeLimits
    key: ScopeLimits
