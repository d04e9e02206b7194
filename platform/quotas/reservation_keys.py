"""The names in Redis of one reservation: all in its tenant's bucket."""

from dataclasses import dataclass

from quotas.limits import LimitRule, LimitScope
from quotas.periods import Period
from tenants.shards import epoch_key, tenant_key
from usage.stream import stream_key


@dataclass(frozen=True, slots=True)
class ReservationKeys:
    """Every Redis key that one request touches."""

    tenant_id: str
    key_id: str
    request_id: str
    model: str = ""

    @property
    def reservation(self) -> str:
        return tenant_key(self.tenant_id, f"reservation:{self.request_id}")

    @property
    def settled(self) -> str:
        """Exists for a while once the request is settled: what is gone but not settled was lost by Redis."""
        return tenant_key(self.tenant_id, f"settled:{self.request_id}")

    @property
    def open(self) -> str:
        return tenant_key(self.tenant_id, "open")

    @property
    def ledger(self) -> str:
        return stream_key(self.tenant_id)

    @property
    def epoch(self) -> str:
        return epoch_key(self.tenant_id)

    @property
    def tenant_leases(self) -> str:
        return self.leases(LimitScope.TENANT)

    @property
    def key_leases(self) -> str:
        return self.leases(LimitScope.KEY)

    @property
    def all_leases(self) -> list[str]:
        return [self.leases(scope) for scope in LimitScope]

    def leases(self, scope: LimitScope) -> str:
        return self._of_scope("leases", scope)

    def rate(self, rule: LimitRule) -> str:
        return self._of_scope(f"rate:{rule.kind}", rule.scope)

    def budget(self, rule: LimitRule, period: Period) -> str:
        """The period's first second is in it: another time zone has other periods. So is the limit's id: what
        is spent while a limit is cleared isn't counted here, and set again it is counted from the ledger."""
        return self._of_scope(f"budget:{rule.kind}:{period.start}:{rule.limit_id}", rule.scope)

    def _of_scope(self, name: str, scope: LimitScope) -> str:
        match scope:
            case LimitScope.TENANT:
                subject = self.tenant_id
            case LimitScope.KEY:
                subject = self.key_id
            case LimitScope.MODEL:
                subject = f"{self.tenant_id}:{self.model}"
        return tenant_key(self.tenant_id, f"{name}:{scope}:{subject}")

    def for_settling(self) -> list[str]:
        """As lua/settle.lua takes them."""
        return [self.reservation, self.open, self.ledger, self.settled, *self.all_leases]
