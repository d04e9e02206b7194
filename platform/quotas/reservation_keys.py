"""The names in Redis of one reservation: all in its tenant's bucket."""

from dataclasses import dataclass

from tenants.shards import epoch_key, tenant_key
from usage.stream import stream_key


@dataclass(frozen=True, slots=True)
class ReservationKeys:
    """Every Redis key that one request touches."""

    tenant_id: str
    key_id: str
    request_id: str

    @property
    def reservation(self) -> str:
        return tenant_key(self.tenant_id, f"reservation:{self.request_id}")

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
        return tenant_key(self.tenant_id, f"leases:tenant:{self.tenant_id}")

    @property
    def key_leases(self) -> str:
        return tenant_key(self.tenant_id, f"leases:key:{self.key_id}")

    def rate(self, scope: str) -> str:
        return tenant_key(
            self.tenant_id, f"rate:{scope}:{self.tenant_id if scope == 'tenant' else self.key_id}"
        )

    def for_settling(self) -> list[str]:
        """As lua/settle.lua takes them."""
        return [self.reservation, self.open, self.ledger, self.tenant_leases, self.key_leases]
