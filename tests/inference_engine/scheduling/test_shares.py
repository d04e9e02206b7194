"""A tenant's part of the KV pool: what can never fit is refused, what doesn't fit now waits without blocking
others."""

import pytest

from inference_engine.contract.codes import Code
from inference_engine.contract.events import Refused
from inference_engine.contract.requests import TenantShare
from inference_engine.scheduling.shares import TenantShares

POLICIES = pytest.mark.parametrize("policy", ["fcfs", "priority", "fair"])
HALF = {"alice": TenantShare(max_kv_fraction=0.5)}


def test_a_tenant_without_a_share_has_the_pool_and_the_weight_on_its_requests():
    shares = TenantShares(num_blocks=10)
    assert (shares.max_blocks("x"), shares.max_tokens("x"), shares.weight("x", 3.0)) == (None, 160, 3.0)


def test_a_share_can_be_replaced_and_taken_back():
    shares = TenantShares(num_blocks=10)
    shares.update({"x": TenantShare(weight=2.0, max_kv_fraction=0.35)})
    assert (shares.max_blocks("x"), shares.max_tokens("x"), shares.weight("x", 3.0)) == (3, 48, 2.0)
    shares.update({"x": TenantShare(max_kv_fraction=0.01)})
    assert shares.max_blocks("x") == 1
    shares.update({"x": TenantShare()})
    assert shares.max_blocks("x") is None


def test_what_never_fits_the_tenants_part_is_refused_and_max_tokens_is_clamped_to_it(engine):
    small = engine(num_blocks=8)
    small.scheduler.set_tenant_shares(HALF)
    refused = small.add("a", 64)
    assert isinstance(refused, Refused) and refused.reason is Code.TENANT_KV_SHARE_EXCEEDED
    assert refused.code is Code.KV_POOL_EXCEEDED  # for gateways that know no narrower one
    assert small.add("big", 128, tenant_id="bob").reason is Code.KV_POOL_EXCEEDED
    assert small.add("b", 60, max_tokens=50).max_tokens == 4
    assert small.add("c", 64, max_tokens=50, tenant_id="bob").max_tokens == 50


@POLICIES
def test_a_tenant_at_its_limit_waits_and_others_pass_it(engine, policy):
    small = engine(policy=policy, num_blocks=16)
    small.scheduler.set_tenant_shares(HALF)
    for number in range(4):
        small.add(f"a{number}", 40, max_tokens=8, ignore_eos=True)
    small.add("b", 40, max_tokens=8, ignore_eos=True, tenant_id="bob")
    plan = small.plan()
    assert {c.request.request_id for c in plan.chunks} == {"a0", "a1", "b"}
    small.apply(plan)
    while small.scheduler.has_work():
        small.step()
        assert small.scheduler.blocks_by_tenant().get("alice", 0) <= 8
    assert small.scheduler.stats().num_finished == 5


@POLICIES
def test_a_tenant_that_grows_beyond_its_limit_stops_one_of_its_own(checked, generate, policy):
    engine = checked(policy=policy, num_blocks=30)
    engine.set_tenant_shares({"alice": TenantShare(max_kv_fraction=0.3)})
    for number in range(3):
        engine.add(generate(f"a{number}", 40, max_tokens=70, ignore_eos=True))
    engine.add(generate("b", 40, max_tokens=70, ignore_eos=True, tenant_id="bob"))
    requests = dict(engine.scheduler.requests)
    while engine.scheduler.requests:
        engine.turn()
        assert engine.scheduler.blocks_by_tenant().get("alice", 0) <= 9
    assert requests["b"].num_preemptions == 0
    assert requests["a2"].num_preemptions > 0
    assert all(len(request.output_ids) == 70 for request in requests.values())


@POLICIES
@pytest.mark.parametrize("lag", [0, 1])
def test_a_limit_lowered_under_what_a_request_needs_lets_it_finish_alone(checked, generate, policy, lag):
    engine = checked(policy=policy, num_blocks=20, lag=lag)
    for number in range(2):
        engine.add(generate(f"a{number}", 70, max_tokens=60, ignore_eos=True))
    requests = list(engine.scheduler.requests.values())
    for _ in range(5):
        engine.turn()
    engine.set_tenant_shares({"alice": TenantShare(max_kv_fraction=0.1)})
    engine.drain()
    assert all(len(request.output_ids) == 60 for request in requests)


def test_blocks_that_requests_of_a_tenant_share_count_once(engine):
    small = engine(num_blocks=16)
    small.scheduler.set_tenant_shares(HALF)
    prompt = [50 + position for position in range(70)]
    small.add("first", prompt, max_tokens=3, ignore_eos=True)
    small.step()
    small.add("second", prompt, max_tokens=3, ignore_eos=True)
    small.step()
    assert small.scheduler.blocks_by_tenant() == {"alice": 6}
    assert len(small.scheduler.roster.running) == 2
