"""n > 1: one prompt computed once, a copy of the block where choices part, and what becomes of a group."""

import pytest

from inference_engine.contract.codes import Code
from inference_engine.scheduling.request import RequestState
from inference_engine.scheduling.step_plan import SampledToken

PROMPT = [50 + position for position in range(40)]


def add_group(engine, size: int = 3, prompt=PROMPT, **fields):
    for choice in range(size):
        engine.add(f"c{choice}", prompt, group_id="g", choice=choice, **{"ignore_eos": True, **fields})
    return [engine.scheduler.requests[f"c{choice}"] for choice in range(size)]


def test_the_leader_computes_the_prompt_and_the_others_only_its_last_token(engine):
    small = engine()
    add_group(small)
    first = small.plan()
    assert [(c.request.request_id, len(c.token_ids)) for c in first.chunks] == [("c0", 40)]
    assert first.copies == []
    small.apply(first)
    second = small.plan()
    assert [(c.request.request_id, c.start, len(c.token_ids)) for c in second.chunks] == [
        ("c0", 40, 1),
        ("c1", 39, 1),
        ("c2", 39, 1),
    ]


def test_full_blocks_are_shared_and_the_partial_one_is_copied(engine):
    small = engine()
    leader, one, other = add_group(small)
    small.step()
    plan = small.plan()
    tables = [request.block_table for request in (leader, one, other)]
    assert tables[0][:2] == tables[1][:2] == tables[2][:2]
    assert len({table[2] for table in tables}) == 3
    assert plan.copies == [(tables[0][2], tables[1][2]), (tables[0][2], tables[2][2])]
    assert small.scheduler.stats().blocks_referenced == 5


def test_a_prompt_that_ends_with_a_block_shares_all_but_that_one(engine):
    small = engine()
    leader, one = add_group(small, 2, PROMPT[:32])
    small.step()
    plan = small.plan()
    assert plan.copies == [(leader.block_table[1], one.block_table[1])]
    assert plan.chunks[1].start == 31


def test_nothing_is_copied_where_the_last_token_begins_a_block(engine):
    small = engine()
    _, one = add_group(small, 2, PROMPT[:33])
    small.step()
    plan = small.plan()
    assert plan.copies == [] and plan.chunks[1].start == 32
    assert one.cached_tokens == 32


def test_forked_tokens_count_as_cached(engine):
    small = engine()
    leader, one, _ = add_group(small)
    small.step()
    small.step()
    assert (leader.cached_tokens, one.cached_tokens) == (0, 39)
    assert small.scheduler.stats().num_computed_tokens == 40 + 3


def test_the_prompt_of_a_group_counts_once_in_the_totals(engine):
    small = engine()
    add_group(small, 3)
    while small.scheduler.has_work():
        small.step()
    add_group(small, 3)
    while small.scheduler.has_work():
        small.step()
    stats = small.scheduler.stats()
    assert (stats.prompt_tokens, stats.cached_prompt_tokens) == (2 * 40, 32)
    assert stats.num_finished == 6


def test_choices_that_each_compute_the_prompt_count_it_once_too(engine):
    """Prompt logprobs need every row, so such choices are no group; the prompt is still billed once."""
    small = engine()
    for choice in range(3):
        small.add(f"c{choice}", PROMPT, choice=choice, prompt_logprobs=0)
    assert small.scheduler.stats().prompt_tokens == 40


def test_groups_fork_without_a_prefix_cache_too(engine):
    small = engine(enable_prefix_cache=False)
    add_group(small)
    small.step()
    assert len(small.plan().copies) == 2


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("length", [1, 15, 16, 17, 40])
def test_every_choice_gets_its_own_text(checked, generate, lag, length):
    engine = checked(lag=lag)
    for choice in range(4):
        engine.add(
            generate(f"c{choice}", PROMPT[:length], group_id="g", choice=choice, seed=choice, max_tokens=30)
        )
    requests = list(engine.scheduler.requests.values())
    engine.drain()
    assert len({tuple(request.output_ids) for request in requests}) == 4
    assert engine.num_forks == (3 if (length - 1) % 16 else 0)


def test_followers_wait_beside_the_queue_and_are_counted(engine):
    small = engine()
    add_group(small)
    stats = small.scheduler.stats()
    assert (stats.num_waiting, stats.waiting_tokens) == (3, 120)
    small.step()
    assert small.scheduler.stats().num_waiting == 2
    small.scheduler.check_integrity()


def test_a_leader_that_is_aborted_leaves_its_part_to_the_next(engine):
    small = engine(max_step_tokens=20)
    _, one, other = add_group(small)
    small.step()
    small.scheduler.abort("c0", 0, Code.CLIENT_GONE)
    small.scheduler.check_integrity()
    plan = small.plan()
    assert [c.request for c in plan.chunks] == [one]
    small.apply(plan)
    while not one.output_ids:
        assert other.state is RequestState.WAITING
        small.step()
    assert len(small.plan().copies) == 1


def test_a_follower_that_is_aborted_while_it_waits_is_gone(engine):
    small = engine()
    add_group(small)
    for name in ("c1", "c2"):
        small.scheduler.abort(name, 0, Code.CLIENT_GONE)
        small.scheduler.check_integrity()
    small.step()
    assert len(small.plan().chunks) == 1


def test_a_group_that_has_ended_leaves_nothing_behind(engine):
    small = engine()
    add_group(small, max_tokens=3)
    while small.scheduler.has_work():
        small.step()
    groups = small.scheduler.roster.groups
    assert not groups._leaders and not groups._followers and len(groups) == 0


def test_a_leader_that_fails_takes_nobody_with_it(engine):
    small = engine()
    _, one, _ = add_group(small)
    (update,) = small.step(SampledToken(0, failure=Code.NON_FINITE_LOGITS))
    assert update.request.request_id == "c0"
    (update,) = small.step()
    assert update.request is one and one.num_chunks == 1 and one.cached_tokens == 0


def test_a_leader_that_is_done_before_the_others_start_leaves_them_the_prefix_cache(engine):
    small = engine()
    _, one = add_group(small, 2, max_tokens=1)
    small.step()
    plan = small.plan()
    assert plan.copies == [] and plan.chunks[0].start == 32
    assert one.cached_tokens == 32


def test_another_prompt_or_another_tenant_is_not_of_the_group(engine):
    small = engine()
    small.add("a", PROMPT, group_id="g")
    small.add("b", PROMPT[:-1], group_id="g")
    small.add("c", PROMPT, group_id="g", tenant_id="bob")
    assert len(small.plan().chunks) == 3


def test_choices_moved_here_with_outputs_share_the_prompt(checked, generate):
    engine = checked()
    engine.add(generate("c0", PROMPT, group_id="g", output_ids=[5] * 7, ignore_eos=True))
    engine.add(generate("c1", PROMPT, group_id="g", choice=1, output_ids=[6] * 3, ignore_eos=True))
    engine.turn()
    plan = engine.plan()
    assert len(plan.copies) == 1 and plan.chunks[1].start == 40
    engine.apply()
    engine.drain()


def test_a_leader_preempted_in_mid_prompt_is_waited_for(checked, generate):
    engine = checked(num_blocks=9, prefill_budget=16, max_step_tokens=24)
    engine.add(generate("old", 20, max_tokens=100, ignore_eos=True))
    for _ in range(12):
        engine.turn()
    for choice in range(2):
        engine.add(generate(f"c{choice}", 100, group_id="g", choice=choice, max_tokens=4, ignore_eos=True))
    leader = engine.scheduler.requests["c0"]
    while leader.state is not RequestState.RUNNING:
        engine.turn()
    while not leader.num_preemptions and not leader.output_ids:
        engine.turn()
    engine.drain()
    assert engine.scheduler.stats().num_finished == 3


def test_a_group_larger_than_the_running_set_is_served_in_turn(checked, generate):
    engine = checked(max_running=2)
    for choice in range(7):
        engine.add(generate(f"c{choice}", PROMPT, group_id="g", choice=choice, seed=choice, max_tokens=20))
    engine.drain()
    assert engine.scheduler.stats().num_finished == 7
