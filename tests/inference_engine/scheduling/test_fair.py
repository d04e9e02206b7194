"""Virtual token counters: who is next, what is charged, and who gives way."""

import pytest

from inference_engine.contract.requests import ServiceClass, TenantShare
from inference_engine.scheduling.fair import RANK_GRAIN, FairShares
from inference_engine.scheduling.service_counters import CACHED_TOKEN_COST


@pytest.fixture
def fair():
    return FairShares(ageing_tokens=1_000_000)


def admit(policy, request, num_cached: int = 0):
    policy.remove(request)
    request.num_computed = num_cached
    policy.start(request)
    return request


def served(policy, tenant: str) -> float:
    return policy.served(tenant)


def order_of(policy) -> list[str]:
    names = []
    while (head := policy.head()) is not None:
        admit(policy, head)
        names.append(head.tenant_id)
    return names


def test_the_least_served_tenant_is_next_not_the_first_to_come(fair, request_of):
    for arrival in range(4):
        fair.push(request_of(arrival, tenant_id="many"))
    for arrival in range(4, 6):
        fair.push(request_of(arrival, tenant_id="few"))
    assert order_of(fair) == ["many", "few", "many", "few", "many", "many"]


def test_a_weight_of_two_gets_twice_as_much(fair, request_of):
    for arrival in range(12):
        name = "heavy" if arrival % 2 else "light"
        fair.push(request_of(arrival, tenant_id=name, weight=2.0 if name == "heavy" else 1.0))
    assert order_of(fair)[:9].count("heavy") == 6


def test_prompt_tokens_are_charged_at_admission_cached_ones_at_a_fraction_outputs_twice(fair, request_of):
    request = request_of(1, 100)
    fair.push(request)
    assert served(fair, "alice") == 0
    admit(fair, request, num_cached=64)
    assert served(fair, "alice") == pytest.approx(36 + 64 * CACHED_TOKEN_COST)
    request.append_output(7)
    fair.note_outputs(1)
    assert served(fair, "alice") == pytest.approx(36 + 64 * CACHED_TOKEN_COST + 2)


def test_what_a_preemption_makes_it_compute_again_is_not_charged(fair, request_of):
    request = request_of(1, 100)
    fair.push(request)
    admit(fair, request)
    fair.stop(request)
    request.num_preemptions = 1
    fair.push(request)
    admit(fair, request)
    assert served(fair, "alice") == 100


def test_a_tenant_that_comes_back_is_lifted_to_the_least_served_of_those_that_wait(fair, request_of):
    for arrival in range(6):
        fair.push(request_of(arrival, 100, tenant_id="busy"))
    for _ in range(3):
        admit(fair, fair.head())
    fair.push(request_of(10, tenant_id="late"))
    assert served(fair, "late") == served(fair, "busy") == 300


def test_a_tenant_that_comes_to_an_empty_queue_is_lifted_to_the_one_that_left_it(fair, request_of):
    last = request_of(1, 100, tenant_id="busy")
    fair.push(last)
    admit(fair, last)
    fair.push(request_of(2, tenant_id="busy"))
    admit(fair, fair.head())
    fair.push(request_of(3, tenant_id="late"))
    assert served(fair, "late") == 100


def test_absence_earns_nothing_but_being_ahead_is_remembered(fair, request_of):
    ahead = request_of(1, 500, tenant_id="ahead")
    fair.push(ahead)
    admit(fair, ahead)
    fair.push(request_of(2, tenant_id="other"))
    fair.push(request_of(3, tenant_id="ahead"))
    assert served(fair, "ahead") == 500
    assert fair.head().tenant_id == "other"


def test_inside_a_tenant_the_least_served_key_is_next_then_the_oldest(fair, request_of):
    for arrival, key in enumerate("xxxxyy"):
        fair.push(request_of(arrival, key_id=key))
    keys = []
    while (head := fair.head()) is not None:
        keys.append((head.key_id, head.arrival))
        admit(fair, head)
    assert keys == [("x", 0), ("y", 4), ("x", 1), ("y", 5), ("x", 2), ("x", 3)]


def test_blocks_are_taken_from_the_lowest_class_then_the_most_served_tenant_then_the_newest(fair, request_of):
    chat = request_of(9, service_class=ServiceClass.INTERACTIVE)
    old, new = request_of(2, tenant_id="served"), request_of(3, tenant_id="served")
    other, bulk = request_of(4, tenant_id="other"), request_of(1, service_class=ServiceClass.BULK)
    for request in (chat, old, new, other, bulk):
        fair.push(request)
    fair.accounts["served"].served = 3 * RANK_GRAIN
    assert sorted([bulk, new, old, other, chat], key=fair.rank) == [chat, other, old, new, bulk]


def test_two_with_nearly_equal_counters_are_told_apart_by_age(fair, request_of):
    first, second = request_of(1, tenant_id="a"), request_of(2, tenant_id="b")
    for request in (first, second):
        fair.push(request)
    fair.accounts["a"].served = RANK_GRAIN / 2
    assert fair.rank(first) < fair.rank(second)


def test_a_tenant_with_nothing_running_takes_the_newest_place_of_one_that_has_several(engine):
    small = engine(policy="fair", max_running=4, num_blocks=200)
    for number in range(6):
        small.add(f"flood{number}", 20, max_tokens=60, ignore_eos=True, tenant_id="flood")
    for _ in range(3):
        small.step()
    small.add("one", 20, max_tokens=5, ignore_eos=True, tenant_id="single")
    plan = small.plan()
    assert "one" in {chunk.request.request_id for chunk in plan.chunks}
    paused = [r for r in small.scheduler.requests.values() if r.num_preemptions]
    assert [(r.request_id, len(r.block_table) > 0) for r in paused] == [("flood3", True)]
    small.apply(plan)
    while small.scheduler.has_work():
        small.step()
    stats = small.scheduler.stats()
    assert (stats.num_finished, stats.num_recomputed_tokens) == (7, 0)


def test_places_are_not_taken_from_a_tenant_with_a_single_request(engine):
    small = engine(policy="fair", max_running=2)
    for name in ("a", "b", "c"):
        small.add(name, 20, tenant_id=name)
        small.step()
    assert small.scheduler.stats().num_preemptions == 0
    assert small.scheduler.stats().num_waiting == 1


def test_the_share_set_for_a_tenant_outweighs_the_weight_on_its_requests(engine):
    small = engine(policy="fair")
    small.scheduler.set_tenant_shares({"alice": TenantShare(weight=4.0)})
    small.add("a", weight=2.0)
    small.add("b", weight=2.0, tenant_id="bob")
    assert small.scheduler.requests["a"].weight == 4.0
    assert small.scheduler.requests["b"].weight == 2.0
