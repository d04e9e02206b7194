"""The life of a request: outputs and their end, the prefix cache, failures, aborts in every state, lag."""

import pytest

from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.events import TokenLogprobs
from inference_engine.scheduling.request import RequestState
from inference_engine.scheduling.step_plan import SampledToken, StepResult

END = 2


def finish(engine, token: int = 7) -> None:
    while engine.scheduler.has_work():
        engine.step(token)


# How a request ends.


def test_outputs_end_at_max_tokens(engine):
    small = engine()
    small.add("r", max_tokens=2)
    (first,) = small.step(40)
    assert (first.token_ids, first.finish) == ([40], None)
    (second,) = small.step(41)
    assert (second.token_ids, second.finish, second.code) == ([41], FinishReason.LENGTH, None)
    assert second.request.state is RequestState.FINISHED
    assert not small.scheduler.has_work()


@pytest.mark.parametrize(("fields", "token"), [({}, END), ({"stop_token_ids": (30, 31)}, 31)])
def test_an_end_or_stop_id_ends_the_request_and_is_no_output(engine, fields, token):
    small = engine()
    small.add("r", **fields)
    small.step(40)
    (update,) = small.step(token)
    assert (update.token_ids, update.finish, update.stop_token_id) == ([], FinishReason.STOP, token)
    assert update.request.output_ids == [40]


def test_with_ignore_eos_an_end_id_is_ordinary_and_a_stop_id_still_stops(engine):
    small = engine()
    small.add("r", ignore_eos=True, stop_token_ids=(30,))
    (update,) = small.step(END)
    assert (update.token_ids, update.finish) == ([END], None)
    assert small.step(30)[0].finish is FinishReason.STOP


def test_no_stop_before_min_tokens(engine):
    small = engine()
    small.add("r", min_tokens=2)
    assert [small.step(END)[0].finish for _ in range(3)] == [None, None, FinishReason.STOP]


def test_replayed_outputs_count_against_min_tokens(engine):
    small = engine()
    small.add("r", min_tokens=2, output_ids=[40, 41])
    assert small.step(END)[0].finish is FinishReason.STOP


def test_replayed_outputs_are_computed_like_a_prompt_and_not_told_again(engine):
    small = engine()
    small.add("r", [5, 6], output_ids=[40, 41])
    plan = small.plan()
    assert plan.chunks[0].token_ids == [5, 6, 40, 41]
    (update,) = small.apply(plan, 42)
    assert update.token_ids == [42]
    assert update.request.known_ids == [5, 6, 40, 41, 42]
    assert small.scheduler.stats().output_tokens == 1


# Logprobs.


def test_logprobs_pass_through_when_asked_for(engine):
    small = engine()
    small.add("asked", logprobs=1)
    small.add("not", 4)
    token = SampledToken(40, logprob=-0.25, top=[(40, -0.25)])
    asked, other = small.step(token)
    assert asked.logprobs == [TokenLogprobs(logprob=-0.25, top=[(40, -0.25)])]
    assert other.logprobs is None


# The prefix cache.


def test_a_tenants_second_request_finds_the_first_ones_prompt(engine):
    small = engine()
    prompt = [50 + position for position in range(40)]
    small.add("first", prompt, max_tokens=1)
    finish(small)
    answer = small.add("second", prompt, max_tokens=1)
    assert answer.cached_tokens == 32
    plan = small.plan()
    assert plan.chunks[0].token_ids == prompt[32:]
    assert plan.chunks[0].request.cached_tokens == 32
    assert small.scheduler.stats().cached_prompt_tokens == 32


def test_another_tenant_finds_nothing_of_it(engine):
    small = engine()
    prompt = [50 + position for position in range(40)]
    small.add("first", prompt, max_tokens=1)
    finish(small)
    assert small.add("other", prompt, tenant_id="bob").cached_tokens == 0
    assert small.plan().chunks[0].token_ids == prompt


def test_a_hit_never_covers_the_last_known_token(engine):
    small = engine()
    prompt = [50 + position for position in range(32)]
    small.add("first", prompt, max_tokens=1)
    finish(small)
    assert small.add("second", prompt).cached_tokens == 16
    assert small.plan().chunks[0].token_ids == prompt[16:]


def test_a_prefix_is_found_once_it_is_confirmed_and_not_before(engine):
    small = engine()
    prompt = [50 + position for position in range(40)]
    small.add("first", prompt)
    plan = small.plan()
    assert small.add("early", prompt).cached_tokens == 0
    small.apply(plan)
    assert small.add("late", prompt).cached_tokens == 32


def test_outputs_are_found_too(engine):
    small = engine()
    small.add("first", [5] * 10, max_tokens=30, ignore_eos=True)
    finish(small, 40)
    assert small.add("next turn", [5] * 10 + [40] * 30).cached_tokens == 32


def test_two_that_share_a_prefix_refer_to_the_same_blocks(engine):
    small = engine()
    prompt = [50 + position for position in range(40)]
    small.add("first", prompt)
    small.step()
    small.add("second", prompt)
    small.step()
    first, second = small.scheduler.requests["first"], small.scheduler.requests["second"]
    assert first.block_table[:2] == second.block_table[:2]
    assert first.block_table[2] != second.block_table[2]
    assert small.scheduler.blocks_by_tenant() == {"alice": 4}


def test_without_the_prefix_cache_nothing_is_found(engine):
    small = engine(enable_prefix_cache=False)
    for name in ("first", "second"):
        assert small.add(name, [5] * 40, max_tokens=1).cached_tokens == 0
        finish(small)
    assert small.scheduler.stats().blocks_free == 64


# Failures.


def test_a_failed_token_ends_its_request_alone(engine):
    small = engine()
    small.add("bad", 4)
    small.add("good", 4)
    plan = small.plan()
    failed = SampledToken(0, failure=Code.NON_FINITE_LOGITS)
    bad, good = small.scheduler.apply(plan, StepResult([failed, SampledToken(40)]))
    assert (bad.finish, bad.code, bad.token_ids) == (FinishReason.FAILED, Code.NON_FINITE_LOGITS, [])
    assert (bad.request.finish_reason, bad.request.code) == (FinishReason.FAILED, Code.NON_FINITE_LOGITS)
    assert (good.finish, good.token_ids) == (None, [40])


def test_nobody_finds_what_a_failed_request_computed(engine):
    """Not even the chunks that came before the one that failed."""
    small = engine(max_step_tokens=32)
    prompt = [50 + position for position in range(60)]
    small.add("bad", prompt)
    small.step()
    assert small.add("witness", prompt).cached_tokens == 32
    small.scheduler.abort("witness", 0, Code.CLIENT_GONE)
    small.step(SampledToken(0, failure=Code.NON_FINITE_LOGITS))
    assert small.add("next", prompt).cached_tokens == 0


def test_a_step_that_went_wrong_fails_every_request_in_it(engine):
    small = engine(max_step_tokens=32, max_running=4)
    small.add("long", 90)
    small.add("short", 4)
    plan = small.plan()
    assert [chunk.samples for chunk in plan.chunks] == [False, True]
    updates = small.scheduler.apply(plan, StepResult.failed(plan, Code.INTERNAL_ERROR))
    assert [update.code for update in updates] == [Code.INTERNAL_ERROR] * 2
    assert not small.scheduler.has_work()
    assert small.add("again", 90).cached_tokens == 0


def test_a_token_that_is_missing_is_a_failure(engine):
    small = engine()
    small.add("r")
    (update,) = small.scheduler.apply(small.plan(), StepResult([None]))
    assert (update.finish, update.code) == (FinishReason.FAILED, Code.INTERNAL_ERROR)


def test_a_result_of_another_step_is_refused(engine):
    small = engine(lag=1)
    small.add("r")
    first, second = small.plan(), small.plan()
    with pytest.raises(RuntimeError, match="not the oldest"):
        small.scheduler.apply(second, StepResult([SampledToken(7)]))
    with pytest.raises(ValueError, match="2 results for 1"):
        small.scheduler.apply(first, StepResult([SampledToken(7)] * 2))


# Aborts.


def aborted(engine, request_id: str):
    request = engine.scheduler.abort(request_id, 0, Code.CLIENT_GONE)
    engine.scheduler.check_integrity()
    assert (request.state, request.code) == (RequestState.FINISHED, Code.CLIENT_GONE)
    assert request.finish_reason is FinishReason.ABORTED
    assert request_id not in engine.scheduler.requests
    return request


def blocks_at_rest(engine) -> int:
    stats = engine.scheduler.stats()
    return stats.blocks_free + stats.blocks_cached


def test_abort_while_waiting(engine):
    small = engine()
    small.add("r")
    aborted(small, "r")
    assert small.scheduler.plan() is None
    assert not small.scheduler.has_work()
    assert small.scheduler.stats().num_aborted == 1


def test_abort_in_mid_prefill(engine):
    small = engine(max_step_tokens=32)
    small.add("r", 90)
    small.step()
    request = aborted(small, "r")
    assert request.num_computed == 0 and request.output_ids == []
    assert blocks_at_rest(small) == 64


def test_abort_while_decoding_returns_the_outputs_so_far(engine):
    small = engine()
    small.add("r")
    small.step(40)
    small.step(41)
    assert aborted(small, "r").output_ids == [40, 41]
    assert blocks_at_rest(small) == 64


def test_abort_after_preemption_gives_back_what_was_kept(checked, generate):
    engine = checked(num_blocks=8)
    engine.add(generate("old", 60, max_tokens=60, ignore_eos=True))
    engine.add(generate("new", 60, max_tokens=60, ignore_eos=True))
    new = engine.scheduler.requests["new"]
    while not new.num_preemptions:
        engine.turn()
    assert new.state is RequestState.WAITING and new.block_table
    assert engine.abort("new") is new and not new.block_table
    engine.drain()
    assert engine.scheduler.stats().num_finished == 1


@pytest.mark.parametrize("lag", [0, 1])
def test_abort_in_flight_quarantines_the_blocks_until_the_step_ends(engine, lag):
    small = engine(lag=lag, num_blocks=4)
    small.add("r", 40)
    plans = [small.plan() for _ in range(lag + 1)]
    aborted(small, "r")
    assert small.scheduler.stats().blocks_quarantined == 3
    for plan in plans:
        assert small.scheduler.has_work()
        assert small.apply(plan) == []
    assert small.scheduler.stats().blocks_quarantined == 0
    assert blocks_at_rest(small) == 4
    assert not small.scheduler.has_work()


def test_an_id_can_be_used_again_while_the_aborted_one_is_in_flight(engine):
    small = engine(lag=1)
    small.add("r", [5, 6])
    plan = small.plan()
    aborted(small, "r")
    small.add("r", [8, 9])
    second = small.plan()
    assert small.apply(plan, 40) == []
    (update,) = small.apply(second, 41)
    assert update.request.known_ids == [8, 9, 41]


def test_an_abort_for_an_older_attempt_or_an_unknown_id_does_nothing(engine):
    small = engine()
    small.add("r", attempt=2)
    assert small.scheduler.abort("r", 1, Code.CLIENT_GONE) is None
    assert small.scheduler.abort("other", 0, Code.CLIENT_GONE) is None
    assert small.scheduler.abort("r", 2, Code.CLIENT_GONE) is not None


# Lag 1.


def test_a_chunk_in_flight_of_a_request_that_has_ended_is_dropped(engine):
    small = engine(lag=1, num_blocks=8)
    small.add("r", 4)
    first, second = small.plan(), small.plan()
    (update,) = small.apply(first, END)
    assert update.finish is FinishReason.STOP
    assert small.scheduler.stats().blocks_quarantined == 1
    assert small.apply(second, 40) == []
    assert update.request.output_ids == []
    assert blocks_at_rest(small) == 8


def test_a_token_sampled_for_a_request_that_was_preempted_meanwhile_counts(checked, generate):
    engine = checked(num_blocks=8, lag=1)
    engine.add(generate("old", 60, max_tokens=60, ignore_eos=True))
    engine.add(generate("new", 60, max_tokens=60, ignore_eos=True))
    new = engine.scheduler.requests["new"]
    while not new.num_preemptions:
        engine.turn()
    engine.drain()
    assert len(new.output_ids) == 60
