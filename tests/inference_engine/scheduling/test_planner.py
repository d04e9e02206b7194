"""What goes into a step, and who gets how much of it."""

import pytest

from inference_engine.scheduling.step_plan import PENDING_TOKEN


def rows(plan) -> dict[str, tuple[int, int, bool]]:
    """Request id -> (start, number of tokens, samples)."""
    return {c.request.request_id: (c.start, len(c.token_ids), c.samples) for c in plan.chunks}


def test_nothing_to_do_is_no_step(engine):
    assert engine().scheduler.plan() is None


def test_a_prompt_is_computed_in_one_chunk_and_samples_from_its_last_token(engine):
    small = engine()
    small.add("r", [5, 6, 7])
    plan = small.plan()
    (chunk,) = plan.chunks
    assert (chunk.start, chunk.token_ids, chunk.samples, plan.num_tokens) == (0, [5, 6, 7], True, 3)
    assert plan.copies == []


def test_a_prompt_longer_than_a_step_is_computed_in_chunks(engine):
    small = engine(max_step_tokens=40)
    small.add("r", 100)
    seen = []
    while not seen or not seen[-1][2]:
        plan = small.plan()
        seen.append(rows(plan)["r"])
        small.apply(plan)
    assert seen == [(0, 40, False), (40, 40, False), (80, 20, True)]


def test_running_decodes_come_first_and_are_never_left_out(engine):
    small = engine(max_step_tokens=12, prefill_budget=4)
    for name in "abc":
        small.add(name, 2)
    small.step()
    small.step()
    small.add("long", 100)
    for _ in range(5):
        plan = small.plan()
        assert [chunk.request.request_id for chunk in plan.chunks[:3]] == ["a", "b", "c"]
        assert rows(plan)["long"][1] == 4
        small.apply(plan)


def test_the_prefill_budget_holds_beside_decodes_and_a_lone_prompt_gets_a_whole_step(engine):
    small = engine(max_step_tokens=300, prefill_budget=128)
    small.add("long", 900)
    plan = small.plan()
    assert rows(plan)["long"][1] == 300
    small.apply(plan)
    small.add("short", 4)
    small.step()
    plan = small.plan()
    assert rows(plan)["short"][1:] == (1, True)
    assert rows(plan)["long"][1] == 128


def test_short_prompts_start_while_a_long_one_prefills(checked, generate):
    """Sixteen streams decode, a 900-token prompt arrives, then short ones: these are done long before it."""
    engine = checked(num_blocks=400, max_running=40, max_step_tokens=512)
    for number in range(16):
        engine.add(generate(f"stream{number}", 20, max_tokens=200, ignore_eos=True))
    for _ in range(3):
        engine.turn()
    engine.add(generate("long", 900))
    engine.turn()
    for number in range(4):
        engine.add(generate(f"short{number}", 20, max_tokens=200, ignore_eos=True))
    for _ in range(2):
        engine.turn()
    live = engine.scheduler.requests
    assert all(live[f"short{number}"].output_ids for number in range(4))
    assert 0 < live["long"].num_computed < 900 - 2 * 128
    for _ in range(8):
        before = live["long"].num_computed
        engine.turn()
        assert live["long"].num_computed > before or live["long"].output_ids


def test_a_long_prompt_finishes_though_short_ones_keep_coming(engine):
    small = engine(max_step_tokens=40, prefill_budget=32, num_blocks=200, max_running=30)
    small.add("long", 200)
    for number in range(60):
        small.add(f"short{number}", 30, max_tokens=1)
        if any(update.request.request_id == "long" for update in small.step()):
            break
    assert number < 40
    assert small.scheduler.requests["long"].output_ids == [7]


def test_several_partial_prefills_share_a_step(engine):
    small = engine(max_step_tokens=64)
    for name in "abc":
        small.add(name, 100)
    plan = small.plan()
    assert len(plan.chunks) == 3 and plan.num_tokens == 64
    assert not any(chunk.samples for chunk in plan.chunks)


def test_no_more_than_max_running_run(engine):
    small = engine(max_running=2)
    for name in "abc":
        small.add(name, 4, max_tokens=2)
    assert rows(small.plan()).keys() == {"a", "b"}
    assert small.scheduler.stats().num_waiting == 1


def test_nobody_overtakes_the_head_of_the_queue(engine):
    small = engine(num_blocks=8)
    small.add("first", 60, max_tokens=4)
    small.step()
    small.add("big", 100)
    small.add("tiny", 4)
    plan = small.plan()
    assert rows(plan).keys() == {"first"}
    small.apply(plan)
    while "first" in small.scheduler.requests:
        small.step()
    assert rows(small.plan()).keys() == {"big", "tiny"}


def test_a_step_in_flight_leaves_a_pending_token_to_the_next(engine):
    small = engine(lag=1)
    small.add("r", [5, 6, 7], max_tokens=3)
    first = small.plan()
    second = small.plan()
    (chunk,) = second.chunks
    assert (chunk.start, chunk.token_ids, chunk.samples) == (3, [PENDING_TOKEN], True)
    small.apply(first, 70)
    third = small.plan()
    assert third.chunks[0].token_ids == [PENDING_TOKEN]
    small.apply(second, 71)
    assert small.scheduler.plan() is None  # the third output is the last, whatever it is
    (update,) = small.apply(third, 72)
    assert update.request.output_ids == [70, 71, 72] and update.finish == "length"


@pytest.mark.parametrize("lag", [0, 1])
def test_planning_beyond_the_lag_is_an_error(engine, lag):
    small = engine(lag=lag)
    small.add("r", 4)
    for _ in range(lag + 1):
        small.plan()
    with pytest.raises(RuntimeError, match="apply first"):
        small.scheduler.plan()


def test_several_prompts_of_one_tenant_do_not_keep_another_s_from_starting(engine):
    small = engine(policy="fair", max_running=32, num_blocks=400, prefill_budget=80)
    small.add("stream", 10, max_tokens=200, ignore_eos=True, tenant_id="carol")
    small.step()
    for number in range(8):
        small.add(f"flood{number}", 300, tenant_id="flood")
    small.step()
    assert len(small.plan().chunks) == 1 + 5
    small.apply(small.scheduler.in_flight[0])
    small.add("single", 12, tenant_id="single")
    plan = small.plan()
    assert {chunk.request.request_id: chunk.samples for chunk in plan.chunks}["single"]
    assert len(plan.chunks) == 1 + 5 + 1
