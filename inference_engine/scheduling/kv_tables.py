"""Page tables: how requests take blocks from the pool, share them, and let them go."""

from collections import Counter
from dataclasses import dataclass

from inference_engine.contract.limits import BLOCK_SIZE

from .block_pool import BlockPool
from .prefix_index import PrefixIndex
from .request import Request, RequestState


def blocks_for(num_tokens: int) -> int:
    return -(-num_tokens // BLOCK_SIZE)


@dataclass(slots=True)
class Found:
    """Computed already, behind what the request has: whole blocks to share, and the beginning of one to
    copy."""

    shared: list[int]
    copied: int | None
    num_tokens: int
    """How far the request is computed once it has them."""


class KVTables:
    def __init__(self, num_blocks: int, secret: bytes, *, enable_prefix_cache: bool) -> None:
        self.index = PrefixIndex(secret)
        self.pool = BlockPool(num_blocks, self.index)
        self.num_held: Counter[str] = Counter()
        """Tenant -> distinct blocks in its page tables. No block belongs to two tenants."""
        self._enable_prefix_cache = enable_prefix_cache

    def find(self, request: Request) -> Found:
        """The leader's prompt if that is more than the prefix cache has. The last known token is always
        left."""
        matched = self.match(request)
        found = Found(matched, None, request.num_computed)
        if matched:
            found.num_tokens = (len(request.block_table) + len(matched)) * BLOCK_SIZE
        if request.leader is not None and not request.block_table and not request.is_scoring:
            fork = _fork(request, request.leader)
            return fork if fork.num_tokens > found.num_tokens else found
        return found

    def match(self, request: Request) -> list[int]:
        """Cached blocks that would follow the request's own."""
        first, last = len(request.block_table), (request.num_known - 1) // BLOCK_SIZE
        if not self._enable_prefix_cache or request.is_scoring or request.num_computed < first * BLOCK_SIZE:
            return []
        return self.index.match(request, first, last)

    def num_cached_prompt_tokens(self, request: Request) -> int:
        """What a waiting request would find computed if it were admitted now."""
        return min(self.find(request).num_tokens, request.num_prompt)

    def pin(self, request: Request, found: Found) -> None:
        """Nobody can take what was found, until `unpin` or `take`."""
        self._hold(request, self.pool.pin(found.shared))

    def unpin(self, request: Request, found: Found) -> None:
        self._hold(request, -self.pool.release(found.shared))

    def take(self, request: Request, found: Found) -> None:
        """Append what is pinned to the request's table. Where the beginning of a block was found too, the
        block that follows is to be a copy of it."""
        if found.num_tokens <= request.num_computed:
            return
        request.block_table.extend(found.shared)
        request.num_published = len(request.block_table)
        request.num_scheduled = request.num_computed = found.num_tokens

    def extend(self, request: Request, count: int) -> None:
        request.block_table.extend(self.pool.allocate(count))
        self._hold(request, count)

    def extend_each(self, requests: list[Request]) -> None:
        """By one."""
        for request, block in zip(requests, self.pool.allocate(len(requests)), strict=True):
            request.block_table.append(block)
            self._hold(request, 1)

    def cut(self, request: Request, num_kept: int) -> None:
        """Let go of all but the first `num_kept` blocks, and of what was computed in the others."""
        self._hold(request, -self.pool.release(request.block_table[num_kept:]))
        request.block_table = request.block_table[:num_kept]
        request.num_published = min(request.num_published, num_kept)
        request.num_scheduled = min(request.num_scheduled, num_kept * BLOCK_SIZE)
        request.num_computed = min(request.num_computed, num_kept * BLOCK_SIZE)

    def publish(self, request: Request) -> None:
        """Name the blocks that have filled. Only ever called for confirmed tokens."""
        num_full = request.num_computed // BLOCK_SIZE
        if num_full > request.num_published:
            if self._enable_prefix_cache:
                self.index.publish(request, request.num_published, num_full)
            request.num_published = num_full

    def forget(self, request: Request) -> None:
        """What the request computed, or read, can't be trusted: nobody may find it again."""
        for block in request.block_table:
            self.index.forget(block)

    def _hold(self, request: Request, num_more: int) -> None:
        tenant = request.tenant_id
        num_held = self.num_held.get(tenant, 0) + num_more
        if num_held:
            self.num_held[tenant] = num_held
        else:
            self.num_held.pop(tenant, None)


def _fork(request: Request, leader: Request) -> Found:
    """Both have the same prompt. Copy-on-write: the block in which they part is copied at once, for the
    leader may be writing behind the prompt already."""
    if leader.state is RequestState.FINISHED:
        return Found([], None, 0)
    num_tokens = min(leader.num_computed, request.num_prompt, request.num_known - 1)
    num_full = num_tokens // BLOCK_SIZE
    copied = leader.block_table[num_full] if num_tokens % BLOCK_SIZE else None
    return Found(leader.block_table[:num_full], copied, num_tokens)
