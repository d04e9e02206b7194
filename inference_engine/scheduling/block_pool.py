"""The KV blocks of one engine. Each block is in exactly one of four places:

free         nobody's; what it holds means nothing
cached       nobody's, but the prefix index names it: reused whole, or evicted, the least recently used first
referenced   in at least one page table
quarantined  in none any more, but a step in flight may still read or write it
"""

from collections import OrderedDict

from .prefix_index import PrefixIndex


class BlockPool:
    def __init__(self, num_blocks: int, index: PrefixIndex) -> None:
        self.num_blocks = num_blocks
        self.index = index
        self.ref_counts = [0] * num_blocks
        self._free = list(range(num_blocks - 1, -1, -1))
        self._cached: OrderedDict[int, None] = OrderedDict()
        self._quarantined: OrderedDict[int, int] = OrderedDict()
        """Block -> the step after which it is safe; steps never fall along the order."""
        self._last_planned = 0
        self.last_applied = 0

    @property
    def num_free(self) -> int:
        return len(self._free)

    @property
    def num_cached(self) -> int:
        return len(self._cached)

    @property
    def num_quarantined(self) -> int:
        return len(self._quarantined)

    @property
    def num_available(self) -> int:
        return len(self._free) + len(self._cached)

    @property
    def num_referenced(self) -> int:
        return self.num_blocks - self.num_available - len(self._quarantined)

    def places(self) -> dict[str, set[int]]:
        """Members of each place but `referenced`, for the integrity check."""
        return {"free": set(self._free), "cached": set(self._cached), "quarantined": set(self._quarantined)}

    def begin_step(self, step: int) -> None:
        """From here on, blocks let go may be in use until `step` has ended."""
        self._last_planned = step

    def end_step(self, step: int) -> None:
        self.last_applied = step
        while self._quarantined:
            block, until = next(iter(self._quarantined.items()))
            if until > step:
                break
            del self._quarantined[block]
            self._put_back(block)

    def allocate(self, count: int) -> list[int]:
        """Take `count` blocks, cached ones once the free ones are gone. The caller has checked the room."""
        return [self._take() for _ in range(count)]

    def pin(self, blocks: list[int]) -> int:
        """Reference blocks that the index or a page table named, wherever they are. Returns how many of them
        nobody referred to."""
        num_new = 0
        for block in blocks:
            num_new += not self.ref_counts[block]
            if block in self._cached:
                del self._cached[block]
            elif block in self._quarantined:
                del self._quarantined[block]
            self.ref_counts[block] += 1
        return num_new

    def release(self, blocks: list[int]) -> int:
        """Drop one reference to each, the last first: the tail of a prefix is evicted before its head.
        Returns to how many of them nobody refers any more."""
        ref_counts, num_gone = self.ref_counts, 0
        is_in_use = self._last_planned > self.last_applied
        for block in reversed(blocks):
            ref_counts[block] = num_left = ref_counts[block] - 1
            if num_left:
                continue
            num_gone += 1
            if is_in_use:
                self._quarantined[block] = self._last_planned
            else:
                self._put_back(block)
        return num_gone

    def _take(self) -> int:
        if self._free:
            block = self._free.pop()
        else:
            block, _ = self._cached.popitem(last=False)
            self.index.forget(block)
        self.ref_counts[block] = 1
        return block

    def _put_back(self, block: int) -> None:
        if block in self.index:
            self._cached[block] = None
        else:
            self._free.append(block)
