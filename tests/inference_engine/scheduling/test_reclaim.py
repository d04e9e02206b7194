"""Out of blocks: who gives way, what is kept, how it comes back. Every test sees the preemption happen."""

import pytest

from inference_engine.contract.requests import ServiceClass
from inference_engine.scheduling.reclaim import Reclaimer
from inference_engine.scheduling.request import RequestState


def run(engine, num_turns: int) -> None:
    for _ in range(num_turns):
        engine.turn()


def run_until_preempted(engine) -> None:
    for _ in range(200):
        engine.turn()
        if engine.scheduler.stats().num_preemptions:
            return
    pytest.fail("nobody was preempted")


@pytest.mark.parametrize("lag", [0, 1])
def test_two_greedy_requests_in_a_pool_of_ten_blocks_get_their_own_texts(checked, generate, lag):
    engine = checked(num_blocks=10, lag=lag)
    requests = []
    for name in ("first", "second"):
        engine.add(generate(name, 60, max_tokens=80, ignore_eos=True))
        requests.append(engine.scheduler.requests[name])
    engine.drain()
    first, second = requests
    assert (first.num_preemptions, second.num_preemptions > 0) == (0, True)
    assert [len(request.output_ids) for request in requests] == [80, 80]
    assert second.num_recomputed_tokens > 0
    stats = engine.scheduler.stats()
    assert stats.num_preemptions == second.num_preemptions
    assert stats.num_recomputed_tokens == second.num_recomputed_tokens


def test_the_victim_loses_only_the_tail_blocks_that_are_needed(checked, generate):
    engine = checked(num_blocks=8)
    engine.add(generate("old", 60, max_tokens=60, ignore_eos=True))
    engine.add(generate("new", 60, max_tokens=60, ignore_eos=True))
    live = engine.scheduler.requests
    run_until_preempted(engine)
    old, new = live["old"], live["new"]
    assert (old.state, new.state) == (RequestState.RUNNING, RequestState.WAITING)
    assert len(old.block_table) == 5 and len(new.block_table) == 3
    assert new.num_computed == 48


def test_a_resumed_request_goes_on_from_the_blocks_it_kept(checked, generate):
    engine = checked(num_blocks=8, enable_prefix_cache=False)
    engine.add(generate("old", 60, max_tokens=10, ignore_eos=True))
    engine.add(generate("new", 60, max_tokens=20, ignore_eos=True))
    new = engine.scheduler.requests["new"]
    run_until_preempted(engine)
    num_known = new.num_known
    engine.drain()
    assert new.num_preemptions == 1
    assert new.num_recomputed_tokens == num_known - 1 - 48
    assert new.cached_tokens == 0
    assert len(new.output_ids) == 20


def test_a_resumed_request_waits_until_all_it_knows_has_room(checked, generate):
    engine = checked(num_blocks=8)
    engine.add(generate("old", 60, max_tokens=60, ignore_eos=True))
    engine.add(generate("new", 60, max_tokens=60, ignore_eos=True))
    run_until_preempted(engine)
    new = engine.scheduler.requests["new"]
    while "old" in engine.scheduler.requests:
        assert new.state is RequestState.WAITING
        engine.turn()
    engine.turn()
    assert new.state is RequestState.RUNNING
    assert len(new.block_table) * 16 >= new.num_known


def test_the_lowest_class_gives_way_though_it_came_first(checked, generate):
    engine = checked(num_blocks=8)
    engine.add(generate("bulk", 60, max_tokens=60, ignore_eos=True, service_class=ServiceClass.BULK))
    engine.add(generate("chat", 60, max_tokens=60, ignore_eos=True, service_class=ServiceClass.INTERACTIVE))
    bulk, chat = engine.scheduler.requests["bulk"], engine.scheduler.requests["chat"]
    run_until_preempted(engine)
    assert (bulk.num_preemptions, chat.num_preemptions) == (1, 0)
    engine.drain()
    assert len(bulk.output_ids) == len(chat.output_ids) == 60


def test_of_one_class_the_newest_gives_way(checked, generate):
    engine = checked(num_blocks=12)
    for name in ("first", "second", "third"):
        engine.add(generate(name, 60, max_tokens=60, ignore_eos=True))
    live = dict(engine.scheduler.requests)
    run_until_preempted(engine)
    assert [live[name].num_preemptions for name in ("first", "second", "third")] == [0, 0, 1]


def test_nobody_is_preempted_twice_without_progress(checked, generate):
    """Eight that want more than their share; CheckedScheduler looks at their progress at each preemption."""
    engine = checked(num_blocks=12)
    requests = []
    for number in range(8):
        engine.add(generate(f"r{number}", 20, max_tokens=120, ignore_eos=True))
        requests.append(engine.scheduler.requests[f"r{number}"])
    engine.drain()
    assert max(request.num_preemptions for request in requests) >= 2
    assert all(len(request.output_ids) == 120 for request in requests)


def test_the_head_of_the_queue_may_take_what_others_kept(checked, generate):
    """With nothing running, kept blocks must not hold up the first in line for ever."""
    engine = checked(num_blocks=12)
    for name, service_class, prompt in (
        ("bulk", ServiceClass.BULK, 111),
        ("standard", ServiceClass.STANDARD, 40),
        ("chat", ServiceClass.INTERACTIVE, 30),
    ):
        engine.add(generate(name, prompt, max_tokens=80, ignore_eos=True, service_class=service_class))
    bulk, standard = engine.scheduler.requests["bulk"], engine.scheduler.requests["standard"]
    while not standard.num_preemptions:
        engine.turn()
    assert bulk.state is standard.state is RequestState.WAITING
    num_kept = len(standard.block_table)
    assert num_kept and not bulk.block_table
    engine.abort("chat")
    engine.turn()
    assert bulk.state is RequestState.RUNNING and len(standard.block_table) < num_kept
    engine.drain()
    assert len(bulk.output_ids) == len(standard.output_ids) == 80


def test_blocks_kept_by_a_waiting_request_go_before_another_is_stopped(checked, generate):
    engine = checked(num_blocks=12)
    for name in ("first", "second", "third"):
        engine.add(generate(name, 60, max_tokens=60, ignore_eos=True))
    live = dict(engine.scheduler.requests)
    run_until_preempted(engine)
    run(engine, 16)
    assert len(live["third"].block_table) < 2
    assert live["second"].num_preemptions == 0


def test_a_resumed_request_publishes_again_what_it_computed_again(checked, generate):
    engine = checked(num_blocks=8)
    engine.add(generate("old", 60, max_tokens=70, ignore_eos=True))
    engine.add(generate("new", 60, max_tokens=60, ignore_eos=True))
    new = engine.scheduler.requests["new"]
    run_until_preempted(engine)
    while "old" in engine.scheduler.requests:
        engine.turn()
    while len(new.output_ids) < 50:
        engine.turn()
    table = list(new.block_table)
    assert new.num_recomputed_tokens > 0
    assert engine.scheduler.kv.index.match(new, 0, 6) == table[:6]


def test_a_victim_never_matches_behind_blocks_it_had_not_filled(checked, generate):
    """Preempted in mid-prefill; its prompt's later blocks, cached by another, are of no use to it."""
    prompt = [50 + position for position in range(90)]
    engine = checked(num_blocks=13, prefill_budget=16, bulk_tokens=64)
    engine.add(generate("old", 30, max_tokens=40, ignore_eos=True))
    run(engine, 1)
    engine.add(generate("victim", prompt, max_tokens=4, service_class=ServiceClass.BULK))
    engine.add(generate("twin", prompt[:80], max_tokens=4, ignore_eos=True))
    victim = engine.scheduler.requests["victim"]
    run_until_preempted(engine)
    while "twin" in engine.scheduler.requests:
        engine.turn()
    num_kept = len(victim.block_table)
    assert victim.state is RequestState.WAITING and 0 < victim.num_computed < 16 * num_kept < 80
    assert engine.scheduler.kv.index.match(victim, num_kept, 5)
    engine.turn()
    assert victim.state is RequestState.RUNNING
    engine.drain()
    assert victim.num_preemptions == 1


def test_a_request_is_not_resumed_while_a_chunk_of_it_is_in_flight(engine):
    small = engine()
    small.add("r")
    request = small.scheduler.requests["r"]
    request.last_step = small.scheduler.kv.pool.last_applied + 1
    assert small.scheduler.plan() is None
    request.last_step = 0
    assert small.plan().chunks[0].request is request


def test_with_a_step_in_flight_the_victims_blocks_come_one_step_later(checked, generate):
    engine = checked(num_blocks=8, lag=1)
    engine.add(generate("old", 64, max_tokens=40, ignore_eos=True))
    engine.add(generate("new", 60, max_tokens=40, ignore_eos=True))
    old, new = engine.scheduler.requests["old"], engine.scheduler.requests["new"]
    engine.plan()
    plan = engine.plan()
    assert new.num_preemptions == 1 and new.last_step > engine.scheduler.kv.pool.last_applied
    assert engine.scheduler.stats().blocks_quarantined == 1
    assert plan is None
    engine.apply()
    assert [chunk.request for chunk in engine.plan().chunks] == [old]
    engine.drain()
    assert [len(request.output_ids) for request in (old, new)] == [40, 40]


def test_two_that_grow_in_one_step_are_not_promised_the_same_block(checked, generate):
    engine = checked(num_blocks=13, lag=1)
    for name in ("first", "second"):
        engine.add(generate(name, 64, max_tokens=10, ignore_eos=True))
    engine.add(generate("bulk", 78, max_tokens=9, ignore_eos=True, service_class=ServiceClass.BULK))
    bulk = engine.scheduler.requests["bulk"]
    engine.plan()
    engine.plan()
    assert bulk.num_preemptions == 1
    assert engine.scheduler.stats().blocks_quarantined == 2
    engine.drain()


def test_the_least_deserving_stalls_rather_than_stop_a_better_one(checked, generate):
    engine = checked(num_blocks=8)
    engine.add(generate("old", 56, max_tokens=30, ignore_eos=True))
    engine.add(generate("new", 62, max_tokens=30, ignore_eos=True))
    old, new = engine.scheduler.requests["old"], engine.scheduler.requests["new"]
    run(engine, 6)
    assert (len(old.output_ids), len(new.output_ids)) == (6, 3)
    assert new.state is RequestState.RUNNING
    assert (old.num_preemptions, new.num_preemptions) == (0, 0)
    run_until_preempted(engine)
    assert (old.num_preemptions, new.num_preemptions) == (0, 1)
    engine.drain()
    assert len(new.output_ids) == 30


def test_the_last_block_goes_to_the_most_deserving(checked, generate):
    engine = checked(num_blocks=9)
    engine.add(generate("bulk", 64, max_tokens=30, ignore_eos=True, service_class=ServiceClass.BULK))
    engine.add(generate("chat", 64, max_tokens=30, ignore_eos=True, service_class=ServiceClass.INTERACTIVE))
    bulk, chat = engine.scheduler.requests["bulk"], engine.scheduler.requests["chat"]
    run(engine, 2)
    assert (len(chat.output_ids), len(bulk.output_ids)) == (2, 1)
    assert engine.scheduler.stats().num_preemptions == 0
    run_until_preempted(engine)
    assert bulk.num_preemptions == 1
    engine.drain()


def test_of_those_that_wait_the_least_deserving_gives_its_blocks(engine):
    small = engine(num_blocks=6)
    for name in ("first", "second", "third"):
        small.add(name, 30)
    small.step()
    live = small.scheduler.requests
    for name in ("second", "third"):
        small.scheduler.roster.preempt(live[name])
    scheduler = small.scheduler
    Reclaimer(scheduler.roster, scheduler.kv, scheduler.shares, scheduler.totals).grow(live["first"])
    assert [len(live[name].block_table) for name in ("first", "second", "third")] == [3, 2, 1]
    small.scheduler.check_integrity()


def test_an_admission_that_finds_no_room_leaves_no_trace(engine):
    small = engine(num_blocks=6)
    prompt = [50 + position for position in range(33)]
    small.add("first", prompt, max_tokens=1)
    small.step()
    small.add("holder", 60, max_tokens=3)
    small.step()
    before = small.scheduler.stats()
    assert (before.blocks_cached, before.blocks_referenced) == (2, 4)
    assert small.add("second", prompt).cached_tokens == 32
    small.step()
    after = small.scheduler.stats()
    assert (after.num_waiting, after.blocks_cached, after.blocks_referenced) == (1, 2, 4)
    small.step()
    assert small.plan().chunks[0].request.cached_tokens == 32


def test_tokens_that_were_only_found_again_are_no_progress(request_of):
    """A resumed request may find more in the prefix cache than it had, and compute nothing in that step."""
    bulk = request_of(1, 60, service_class=ServiceClass.BULK)
    chat = request_of(2, 20, service_class=ServiceClass.INTERACTIVE)
    bulk.preempted_at = bulk.guarded_until = bulk.num_reached = 31
    bulk.num_computed = bulk.num_scheduled = 32
    assert not bulk.can_be_preempted_for(chat)
    bulk.num_computed = bulk.num_scheduled = bulk.num_reached = 33
    assert bulk.can_be_preempted_for(chat)
