"""A model small enough to recompute: its next token depends on all those before, in order, and on the tenant.

A token's KV is one number, chained from the KV of the token before it, and a sampled token is a hash over the
KV of *all* positions. So whoever reads a block that holds something else gets another token.
"""

import zlib
from collections.abc import Sequence


def origin(tenant_id: str) -> int:
    """What stands before position 0. It differs by tenant, so that KV shared between tenants shows."""
    return zlib.crc32(tenant_id.encode())


def kv_of(previous: int, token_id: int) -> int:
    return hash((previous, token_id))


def next_token(kv: Sequence[int], seed: int, vocab_size: int) -> int:
    """Odd seeds write two tokens only, so that drafts by prompt lookup are often right."""
    return hash((seed, *kv)) % (2 if seed % 2 else vocab_size)


class Transcript:
    """One request recomputed on its own, token by token."""

    def __init__(self, tenant_id: str, seed: int, vocab_size: int, known_ids: Sequence[int]) -> None:
        self._origin = origin(tenant_id)
        self._seed = seed
        self._vocab_size = vocab_size
        self._kv: list[int] = []
        for token_id in known_ids:
            self.append(token_id)

    def append(self, token_id: int) -> None:
        self._kv.append(kv_of(self._kv[-1] if self._kv else self._origin, token_id))

    def next_token(self) -> int:
        return next_token(self._kv, self._seed, self._vocab_size)
