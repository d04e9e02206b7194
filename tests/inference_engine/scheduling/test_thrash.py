"""Preemption may not become the main thing an engine does."""

import pytest

from inference_engine.contract.requests import ServiceClass

POLICIES = pytest.mark.parametrize("policy", ["fcfs", "priority", "fair"])


@POLICIES
@pytest.mark.parametrize("lag", [0, 1])
def test_no_request_computes_again_more_than_twice_its_length(checked, generate, policy, lag):
    """Thirty requests in a pool that holds two or three. By reclaim.py's rule each round computes no more
    again than it then computes anew, but for the last one, which the end of the request may cut short."""
    engine = checked(policy=policy, num_blocks=22, lag=lag, max_running=8)
    requests = []
    for number in range(30):
        name = f"r{number}"
        engine.add(generate(name, 20, max_tokens=150, ignore_eos=True, tenant_id=f"t{number % 3}"))
        requests.append(engine.scheduler.requests[name])
    engine.drain()
    stats = engine.scheduler.stats()
    assert stats.num_preemptions > 20
    for request in requests:
        assert request.num_recomputed_tokens <= 2 * request.num_known
    assert stats.num_recomputed_tokens <= 2 / 3 * stats.num_computed_tokens


@POLICIES
def test_whoever_comes_back_has_room_for_as_much_as_it_lost(checked, generate, policy):
    engine = checked(policy=policy, num_blocks=14, enable_prefix_cache=False)
    for name in ("old", "new"):
        engine.add(generate(name, 60, max_tokens=70, ignore_eos=True))
    new = engine.scheduler.requests["new"]
    while not new.num_preemptions:
        engine.turn()
    num_known = new.num_known
    while new.state.value == "waiting":
        num_kept = new.num_computed
        engine.turn()
    num_lost = num_known - 1 - num_kept
    assert num_lost > 0
    assert len(new.block_table) * 16 >= min(num_known + num_lost, 130)
    engine.drain()


def test_stats_tell_how_much_was_computed_in_all(engine):
    small = engine()
    small.add("r", 30, max_tokens=5, ignore_eos=True)
    while small.scheduler.has_work():
        small.step()
    stats = small.scheduler.stats()
    assert (stats.num_computed_tokens, stats.num_recomputed_tokens) == (34, 0)


def test_bulk_is_stopped_for_a_chat_as_soon_as_it_has_any_progress(engine):
    small = engine(policy="priority", max_running=1)
    small.add("bulk", 40, service_class=ServiceClass.BULK, max_tokens=40, ignore_eos=True)
    small.step()
    bulk = small.scheduler.requests["bulk"]
    for number in range(3):
        small.add(f"chat{number}", 10, service_class=ServiceClass.INTERACTIVE, max_tokens=1)
        small.step()
        assert bulk.num_preemptions == number + 1
        small.step()
        small.step()
    assert bulk.num_recomputed_tokens == 0
