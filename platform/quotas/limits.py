"""What a request is measured against. Plain values; quotas/models.py keeps them."""

from dataclasses import dataclass

from django.conf import settings
from django.db.models import TextChoices

MAX_VALUE = 10**12
"""Sums of tokens stay exact in Redis' doubles."""


class LimitScope(TextChoices):
    TENANT = "tenant", "tenant"
    KEY = "key", "API key"
    MODEL = "model", "model of a tenant"


class LimitKind(TextChoices):
    CONCURRENT = "concurrent", "requests at once"
    QUEUED = "queued", "requests waiting in an engine"
    REQUESTS_PER_MINUTE = "requests_per_minute", "requests per minute"
    TOKENS_PER_MINUTE = "tokens_per_minute", "tokens per minute"
    TOKENS_PER_DAY = "tokens_per_day", "tokens per day"
    TOKENS_PER_MONTH = "tokens_per_month", "tokens per month"
    STORED_BYTES = "stored_bytes", "bytes of files"
    BATCHES = "batches", "batches at once"


RATES = frozenset({LimitKind.REQUESTS_PER_MINUTE, LimitKind.TOKENS_PER_MINUTE})
BUDGETS = frozenset({LimitKind.TOKENS_PER_DAY, LimitKind.TOKENS_PER_MONTH})
OF_TENANTS = frozenset({LimitKind.QUEUED, LimitKind.STORED_BYTES, LimitKind.BATCHES})
"""Measured where they are used up, and not at the gate."""
TOKENS = BUDGETS | {LimitKind.TOKENS_PER_MINUTE}


@dataclass(frozen=True, slots=True)
class LimitRule:
    scope: LimitScope
    kind: LimitKind
    value: int
    burst: int | None = None
    """Of a rate: what may come at once; None: the installation's fraction of the value."""
    model: str = ""
    """With scope MODEL."""
    limit_id: int = 0
    """Of its row: a limit that was cleared and set again is another one."""

    @property
    def capacity(self) -> int:
        """The burst of a rate, in requests or tokens."""
        return self.burst or max(1, round(self.value * settings.OCTAVO_RATE_BURST_FRACTION))

    def applies_to(self, model: str) -> bool:
        return self.scope is not LimitScope.MODEL or self.model == model


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules that apply to one request, and the policy epoch they are from."""

    epoch: int
    rules: tuple[LimitRule, ...] = ()
    time_zone: str = "UTC"
    """Where the tenant's days and months begin."""
