"""Which block holds the KV of which prefix, by a 256-bit chain hash that no other tenant can form.

    hash(block 0) = SHA-256(salt(tenant) + tokens)        hash(block i) = SHA-256(hash(block i - 1) + tokens)

The salt is HMAC-SHA256(engine secret, tenant id): equal prompts of two tenants have unrelated hashes, so
neither content nor timing tells one what the other has cached.
"""

import hashlib
import hmac
from array import array

from inference_engine.contract.limits import BLOCK_SIZE

from .request import Request


def tenant_salt(secret: bytes, tenant_id: str) -> bytes:
    return hmac.digest(secret, tenant_id.encode(), "sha256")


def block_hash(parent: bytes, token_ids: list[int]) -> bytes:
    return hashlib.sha256(parent + array("Q", token_ids).tobytes()).digest()


class PrefixIndex:
    """Hash to block and back. A hash names one block; a second block with the same content stays unnamed."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._block_by_hash: dict[bytes, int] = {}
        self._hash_by_block: dict[int, bytes] = {}

    def __contains__(self, block: int) -> bool:
        return block in self._hash_by_block

    def __len__(self) -> int:
        return len(self._hash_by_block)

    def blocks(self) -> set[int]:
        return set(self._hash_by_block)

    def match(self, request: Request, first: int, last: int) -> list[int]:
        """Blocks that hold positions of block index first <= i < last, up to the first that is missing."""
        found: list[int] = []
        for index in range(first, last):
            block = self._block_by_hash.get(self.hash_of(request, index))
            if block is None:
                break
            found.append(block)
        return found

    def publish(self, request: Request, first: int, last: int) -> None:
        """Name the request's blocks first <= i < last, which must be full and computed."""
        for index in range(first, last):
            name, block = self.hash_of(request, index), request.block_table[index]
            if self._block_by_hash.setdefault(name, block) == block:
                self._hash_by_block[block] = name

    def forget(self, block: int) -> None:
        name = self._hash_by_block.pop(block, None)
        if name is not None:
            del self._block_by_hash[name]

    def hash_of(self, request: Request, index: int) -> bytes:
        """Chain hash of block `index`, kept with the request: each block is hashed once in its life."""
        hashes = request.block_hashes
        while len(hashes) <= index:
            start = len(hashes) * BLOCK_SIZE
            parent = hashes[-1] if hashes else tenant_salt(self._secret, request.tenant_id)
            hashes.append(block_hash(parent, request.ids_between(start, start + BLOCK_SIZE)))
        return hashes[index]
