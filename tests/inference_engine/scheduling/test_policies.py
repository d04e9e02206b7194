import pytest

from inference_engine.scheduling.fair import FairShares
from inference_engine.scheduling.fcfs import FirstComeFirstServed
from inference_engine.scheduling.policies import POLICIES, make_policy
from inference_engine.scheduling.priority import PriorityByClass


@pytest.mark.parametrize(
    ("name", "policy"),
    [("fcfs", FirstComeFirstServed), ("priority", PriorityByClass), ("fair", FairShares)],
)
def test_policies_by_name(engine, name, policy):
    assert type(make_policy(name, 100)) is policy
    assert type(engine(policy=name).scheduler.roster.queue) is policy


def test_each_policy_can_be_chosen_and_others_are_refused_by_name(engine):
    assert set(POLICIES) == {"fcfs", "priority", "fair"}
    with pytest.raises(ValueError, match="policy is 'lottery'"):
        engine(policy="lottery")


def test_the_age_that_counts_is_positive(engine):
    with pytest.raises(ValueError, match="ageing_tokens"):
        engine(ageing_tokens=0)
