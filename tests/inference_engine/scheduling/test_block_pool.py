import pytest

from inference_engine.contract.requests import Generate
from inference_engine.contract.sampling import SamplingParams
from inference_engine.scheduling.block_pool import BlockPool
from inference_engine.scheduling.prefix_index import PrefixIndex
from inference_engine.scheduling.request import Request


@pytest.fixture
def pool() -> BlockPool:
    return BlockPool(4, PrefixIndex(b"secret"))


def fill(pool: BlockPool, prompt_ids: list[int]) -> Request:
    """A request that has computed its whole prompt and published it."""
    generate = Generate(
        request_id="r",
        prompt_ids=prompt_ids,
        sampling=SamplingParams(seed=0, max_tokens=1),
        tenant_id="alice",
    )
    request = Request(generate, arrival=1, max_tokens=1, end_ids=frozenset())
    request.block_table = pool.allocate(len(prompt_ids) // 16)
    for index in range(len(request.block_table)):
        pool.index.publish(request, index, index + 1)
    return request


def counts(pool: BlockPool) -> tuple[int, int, int, int]:
    return pool.num_free, pool.num_cached, pool.num_referenced, pool.num_quarantined


def test_every_block_is_in_one_place(pool):
    assert counts(pool) == (4, 0, 0, 0)
    blocks = pool.allocate(3)
    assert sorted(blocks) == sorted(set(blocks))
    assert counts(pool) == (1, 0, 3, 0)
    pool.release(blocks[:1])
    assert counts(pool) == (2, 0, 2, 0)


def test_a_named_block_is_cached_when_released_and_an_unnamed_one_is_free(pool):
    named = fill(pool, list(range(16))).block_table
    pool.release(named + pool.allocate(1))
    assert counts(pool) == (3, 1, 0, 0)


def test_a_block_stays_referenced_until_its_last_holder_lets_go(pool):
    blocks = fill(pool, list(range(16))).block_table
    pool.pin(blocks)
    pool.release(blocks)
    assert counts(pool) == (3, 0, 1, 0)
    pool.release(blocks)
    assert counts(pool) == (3, 1, 0, 0)


def test_free_blocks_go_first_and_then_the_least_recently_used_cached_ones(pool):
    older = fill(pool, list(range(16)))
    newer = fill(pool, list(range(100, 116)))
    pool.release(older.block_table)
    pool.release(newer.block_table)
    assert not set(pool.allocate(2)) & {older.block_table[0], newer.block_table[0]}
    assert pool.allocate(1) == older.block_table
    assert pool.index.match(older, 0, 1) == []
    assert pool.index.match(newer, 0, 1) == newer.block_table


def test_the_tail_of_a_prefix_is_evicted_before_its_head(pool):
    request = fill(pool, list(range(64)))
    pool.release(request.block_table)
    pool.allocate(2)
    assert pool.index.match(request, 0, 4) == request.block_table[:2]


def test_a_pinned_block_is_not_evicted(pool):
    request = fill(pool, list(range(64)))
    pool.release(request.block_table)
    pool.pin(request.block_table[3:])
    assert pool.num_available == 3
    assert request.block_table[3] not in pool.allocate(3)


def test_blocks_released_while_a_step_runs_wait_for_its_end(pool):
    blocks = pool.allocate(2)
    pool.begin_step(1)
    pool.release(blocks[:1])
    assert counts(pool) == (2, 0, 1, 1)
    pool.begin_step(2)
    pool.release(blocks[1:])
    pool.end_step(1)
    assert counts(pool) == (3, 0, 0, 1)
    pool.end_step(2)
    assert counts(pool) == (4, 0, 0, 0)


def test_a_named_block_can_be_pinned_out_of_quarantine(pool):
    request = fill(pool, list(range(16)))
    pool.begin_step(1)
    pool.release(request.block_table)
    pool.pin(request.block_table)
    pool.end_step(1)
    assert counts(pool) == (3, 0, 1, 0)
