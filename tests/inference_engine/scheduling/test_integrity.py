"""The check is worth something only if it sees what is broken: each test breaks one thing."""

import pytest

from inference_engine.scheduling.integrity import BrokenInvariant


@pytest.fixture
def busy(engine):
    """Two running requests that share two blocks, and one that waits."""
    small = engine(max_running=2)
    prompt = [50 + position for position in range(40)]
    for name in ("first", "second"):
        small.add(name, prompt)
        small.step()
    small.add("waiting")
    small.scheduler.check_integrity()
    return small.scheduler


def test_a_lost_block(busy):
    busy.kv.pool._free.pop()
    with pytest.raises(BrokenInvariant, match="blocks"):
        busy.check_integrity()


def test_a_block_in_two_places(busy):
    busy.kv.pool._free.append(busy.requests["first"].block_table[0])
    with pytest.raises(BrokenInvariant, match="places"):
        busy.check_integrity()


def test_a_reference_too_many(busy):
    busy.kv.pool.ref_counts[busy.requests["first"].block_table[0]] += 1
    with pytest.raises(BrokenInvariant, match="reference counts"):
        busy.check_integrity()


def test_a_shared_block_that_can_be_written(busy):
    first, second = busy.requests["first"], busy.requests["second"]
    busy.kv.pool.release([second.block_table[2]])
    busy.kv.pool.pin([first.block_table[2]])
    second.block_table[2] = first.block_table[2]
    with pytest.raises(BrokenInvariant, match="shared"):
        busy.check_integrity()


def test_a_block_of_two_tenants(busy):
    busy.requests["second"].tenant_id = "bob"
    with pytest.raises(BrokenInvariant, match="another tenant"):
        busy.check_integrity()


def test_a_request_in_two_places(busy):
    busy.roster.queue.push(busy.requests["first"])
    with pytest.raises(BrokenInvariant, match="places"):
        busy.check_integrity()


def test_a_request_in_no_place(busy):
    busy.roster.queue.remove(busy.requests["waiting"])
    with pytest.raises(BrokenInvariant, match="places"):
        busy.check_integrity()


def test_more_computed_than_scheduled(busy):
    busy.requests["first"].num_computed += 1
    with pytest.raises(BrokenInvariant, match="out of order"):
        busy.check_integrity()


def test_queue_counts_that_drift(busy):
    busy.roster.waiting_tokens_by_tenant["alice"] += 1
    with pytest.raises(BrokenInvariant, match="waiting tokens"):
        busy.check_integrity()


def test_a_tenants_blocks_that_drift(busy):
    busy.kv.num_held["alice"] += 1
    with pytest.raises(BrokenInvariant, match="tenants hold"):
        busy.check_integrity()


def test_running_counts_that_drift(busy):
    busy.roster.running_bulk[1] = busy.requests["first"]
    with pytest.raises(BrokenInvariant, match="running bulk"):
        busy.check_integrity()
