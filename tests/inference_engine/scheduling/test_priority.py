"""Classes in the real scheduler: who goes first, who gives way, and that nobody starves."""

import pytest

from inference_engine.contract.requests import ServiceClass
from inference_engine.scheduling.request import RequestState

CHAT, STANDARD, BULK = ServiceClass
POLICIES = pytest.mark.parametrize("policy", ["priority", "fair"])


@POLICIES
def test_the_most_urgent_class_is_admitted_first(engine, policy):
    small = engine(policy=policy, max_running=1)
    for name, service_class in (("bulk", BULK), ("standard", STANDARD), ("chat", CHAT)):
        small.add(name, max_tokens=1, service_class=service_class)
    order = [small.step()[0].request.request_id for _ in range(3)]
    assert order == ["chat", "standard", "bulk"]


@POLICIES
def test_bulk_gives_its_place_in_the_very_next_step_and_keeps_its_blocks(engine, policy):
    small = engine(policy=policy, max_running=2)
    for name in ("bulk1", "bulk2"):
        small.add(name, 40, service_class=BULK, ignore_eos=True)
    small.step()
    small.add("chat", 40, service_class=CHAT)
    plan = small.plan()
    assert {c.request.request_id for c in plan.chunks} == {"bulk1", "chat"}
    assert len(small.scheduler.requests["bulk2"].block_table) == 3
    small.apply(plan)
    while small.scheduler.has_work():
        small.step()
    assert small.scheduler.stats().num_recomputed_tokens == 0


@POLICIES
@pytest.mark.parametrize(("lag", "num_steps"), [(0, 1), (1, 2)])
def test_bulk_gives_as_many_blocks_as_a_chat_needs_and_no_more(checked, generate, policy, lag, num_steps):
    engine = checked(policy=policy, num_blocks=12, lag=lag)
    for name in ("bulk1", "bulk2"):
        engine.add(generate(name, 85, service_class=BULK, max_tokens=9, ignore_eos=True))
    engine.turn()
    engine.turn()
    engine.add(generate("chat", 40, service_class=CHAT, max_tokens=5))
    chat, bulk = engine.scheduler.requests["chat"], engine.scheduler.requests["bulk2"]
    for _ in range(num_steps):
        assert chat.state is RequestState.WAITING
        engine.turn()
    assert chat.state is RequestState.RUNNING
    assert bulk.num_preemptions == 1 and len(bulk.block_table) == 3
    engine.drain()
    assert engine.scheduler.stats().num_finished == 3


@POLICIES
def test_the_prompt_of_a_chat_is_not_held_up_by_those_of_bulk(engine, policy):
    small = engine(policy=policy, num_blocks=400, max_running=30, prefill_budget=128)
    small.add("stream", 4, max_tokens=100, ignore_eos=True)
    small.step()
    for number in range(8):
        small.add(f"bulk{number}", 400, service_class=BULK)
    small.step()
    small.add("chat", 90, service_class=CHAT)
    plan = small.plan()
    chat = next(c for c in plan.chunks if c.request.request_id == "chat")
    assert len(chat.token_ids) == 90 and chat.samples


def test_standard_does_not_stop_for_a_chat(engine):
    small = engine(policy="priority", max_running=1)
    small.add("standard", service_class=STANDARD)
    small.step()
    small.add("chat", service_class=CHAT)
    for _ in range(3):
        assert [c.request.request_id for c in small.plan().chunks] == ["standard"]
        small.apply(small.scheduler.in_flight[0])


@POLICIES
def test_bulk_is_served_though_chats_never_stop_coming(engine, policy):
    """A place for one, and always another chat: without ageing bulk would wait for ever."""
    small = engine(policy=policy, max_running=1, ageing_tokens=200)
    small.add("bulk", 10, max_tokens=5, ignore_eos=True, service_class=BULK, tenant_id="bob")
    num_chats, served = 0, 0.0
    while "bulk" in small.scheduler.requests:
        if small.scheduler.stats().num_waiting < 3:
            num_chats += 1
            small.add(f"chat{num_chats}", 10, max_tokens=5, ignore_eos=True, service_class=CHAT)
        small.step()
        served = small.scheduler.stats().output_tokens * 2 + 10 * num_chats
        assert served < 2 * 200 + 100, "bulk has waited for more than two windows of service"
    assert served > 2 * 200 - 100 and num_chats > 10


@POLICIES
def test_bulk_that_its_age_let_in_is_not_sent_out_again_by_the_next_chat(engine, policy):
    small = engine(policy=policy, max_running=1, ageing_tokens=100)
    small.add("bulk", 10, max_tokens=30, ignore_eos=True, service_class=BULK)
    number, steps_of_bulk = 0, []
    for step in range(150):
        if small.scheduler.stats().num_waiting < 2:
            number += 1
            small.add(f"chat{number}", 10, max_tokens=3, ignore_eos=True, service_class=CHAT)
        if "bulk" in {update.request.request_id for update in small.step()}:
            steps_of_bulk.append(step)
    assert len(steps_of_bulk) == 30
    waited = steps_of_bulk[0] if steps_of_bulk[0] > 5 else steps_of_bulk[1]
    assert steps_of_bulk[-1] - waited == len([step for step in steps_of_bulk if step >= waited]) - 1
