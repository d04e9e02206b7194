"""What each tenant may have of the engine: its weight, its part of the KV pool, its part of the queue."""

from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.contract.requests import TenantShare


class TenantShares:
    def __init__(self, num_blocks: int) -> None:
        self._num_blocks = num_blocks
        self._shares: dict[str, TenantShare] = {}
        self._max_blocks: dict[str, int] = {}

    def update(self, shares: dict[str, TenantShare]) -> None:
        """Replace those of the tenants named."""
        self._shares.update(shares)
        for tenant, share in shares.items():
            if share.max_kv_fraction < 1:
                self._max_blocks[tenant] = max(1, int(share.max_kv_fraction * self._num_blocks))
            else:
                self._max_blocks.pop(tenant, None)

    def get(self, tenant_id: str) -> TenantShare | None:
        return self._shares.get(tenant_id)

    @property
    def are_limited(self) -> bool:
        """Some tenant may not have all the KV blocks there are."""
        return bool(self._max_blocks)

    def max_blocks(self, tenant_id: str) -> int | None:
        """KV blocks that all its requests may hold together. None: all there are."""
        return self._max_blocks.get(tenant_id)

    def max_tokens(self, tenant_id: str) -> int:
        return self._max_blocks.get(tenant_id, self._num_blocks) * BLOCK_SIZE

    def weight(self, tenant_id: str, stamped: float) -> float:
        """The one set here, else the one that the gateway stamped on the request."""
        share = self._shares.get(tenant_id)
        return stamped if share is None else share.weight
