import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_engine.contract.requests import Generate, ServiceClass
from inference_engine.contract.sampling import SamplingParams
from inference_engine.scheduling.prefill_shares import max_prefills, share_budget
from inference_engine.scheduling.request import Request


def prompts(lengths, service_class=ServiceClass.STANDARD) -> list[Request]:
    sampling = SamplingParams(seed=1, max_tokens=1)
    generates = [
        Generate(
            request_id="r", prompt_ids=[5] * n, sampling=sampling, tenant_id="a", service_class=service_class
        )
        for n in lengths
    ]
    return [Request(g, arrival=i, max_tokens=1, end_ids=frozenset()) for i, g in enumerate(generates)]


def test_a_lone_prompt_gets_the_whole_budget():
    assert share_budget(prompts([900]), 128) == [128]
    assert share_budget(prompts([20]), 128) == [20]


def test_a_short_prompt_gets_all_it_needs_and_the_long_one_the_rest():
    assert share_budget(prompts([900, 20]), 128) == [108, 20]


def test_a_long_prompt_moves_even_when_short_ones_could_take_everything():
    shares = share_budget(prompts([900, 100, 100]), 128)
    assert shares[0] >= 10
    assert max(shares[1:]) == 100


def test_equal_prompts_are_finished_one_after_the_other():
    assert share_budget(prompts([100, 100]), 128) == [100, 28]


def test_with_fewer_tokens_than_prompts_the_oldest_move():
    assert share_budget(prompts([50] * 5), 3) == [1, 1, 1, 0, 0]


def test_the_more_urgent_class_gets_the_rest_however_long_its_prompt_is():
    shares = share_budget(
        prompts([20, 20], ServiceClass.BULK) + prompts([900], ServiceClass.INTERACTIVE), 120
    )
    assert shares == [10, 10, 100]


@pytest.mark.parametrize(("budget", "at_most"), [(1, 2), (128, 8), (512, 32)])
def test_several_prompts_share_a_step(budget, at_most):
    assert max_prefills(budget) == at_most


@given(st.lists(st.integers(1, 1000), max_size=40), st.integers(1, 600))
def test_shares_use_the_budget_up_and_everyone_moves(remaining, budget):
    shares = share_budget(prompts(remaining), budget)
    assert sum(shares) == min(budget, sum(remaining))
    assert all(0 <= share <= need for share, need in zip(shares, remaining, strict=True))
    if len(remaining) <= budget:
        assert all(shares)
