"""Page tables: how requests take blocks from the pool, share them, and let them go."""

from inference_engine.contract.limits import BLOCK_SIZE

from .block_pool import BlockPool
from .prefix_index import PrefixIndex
from .request import Request


def blocks_for(num_tokens: int) -> int:
    return -(-num_tokens // BLOCK_SIZE)


class KVTables:
    def __init__(self, num_blocks: int, secret: bytes, *, enable_prefix_cache: bool) -> None:
        self.index = PrefixIndex(secret)
        self.pool = BlockPool(num_blocks, self.index)
        self._enable_prefix_cache = enable_prefix_cache

    def match(self, request: Request) -> list[int]:
        """Cached blocks that would follow the request's own; the last known token is always left over."""
        first, last = len(request.block_table), (request.num_known - 1) // BLOCK_SIZE
        if not self._enable_prefix_cache or request.num_computed < first * BLOCK_SIZE:
            return []
        return self.index.match(request, first, last)

    def num_cached_prompt_tokens(self, request: Request) -> int:
        """What a waiting request would find cached if it were admitted now."""
        return min(len(self.match(request)) * BLOCK_SIZE, request.num_prompt)

    def num_missing(self, request: Request) -> int:
        """Blocks still to be found for everything that is known of the request."""
        return blocks_for(request.num_known) - len(request.block_table)

    def take_matched(self, request: Request, matched: list[int]) -> None:
        """`matched` is pinned already."""
        if not matched:
            return
        request.block_table.extend(matched)
        request.num_published = len(request.block_table)
        request.num_scheduled = request.num_computed = len(request.block_table) * BLOCK_SIZE

    def extend(self, request: Request, count: int) -> None:
        request.block_table.extend(self.pool.allocate(count))

    def cut(self, request: Request, num_kept: int) -> None:
        """Let go of all but the first `num_kept` blocks, and of what was computed in the others."""
        self.pool.release(request.block_table[num_kept:])
        request.block_table = request.block_table[:num_kept]
        request.num_published = min(request.num_published, num_kept)
        request.num_scheduled = min(request.num_scheduled, num_kept * BLOCK_SIZE)
        request.num_computed = min(request.num_computed, num_kept * BLOCK_SIZE)

    def publish(self, request: Request) -> None:
        """Name the blocks that have filled. Only ever called for confirmed tokens."""
        num_full = request.num_computed // BLOCK_SIZE
        if num_full > request.num_published:
            if self._enable_prefix_cache:
                for index in range(request.num_published, num_full):
                    self.index.publish(request, index)
            request.num_published = num_full

    def forget(self, request: Request) -> None:
        """What the request computed, or read, can't be trusted: nobody may find it again."""
        for block in request.block_table:
            self.index.forget(block)
