"""Room for output behind each prompt."""

from types import SimpleNamespace
from typing import Any

import pytest

from gateway.orders.room import check_room, facts_of, fleet_facts_of, output_limits
from inference_engine.contract.codes import Code
from inference_engine.contract.requests import Constraint, ConstraintKind
from stand_ins.scripted_engine import description
from tenants.errors import Denied
from tenants.models import Feature

DESCRIPTION = description()  # 256 tokens of context, requests of at most 200


def order(
    prompts: list[int], max_tokens: int | None, num_candidates: int = 1, constraint: Constraint | None = None
) -> Any:
    """Prompts by their lengths."""
    return SimpleNamespace(
        model="m",
        endpoint="/v1/completions",
        prompts=[[1] * length for length in prompts],
        num_candidates=num_candidates,
        constraint=constraint,
        constraint_param="response_format",
        tools=None,
        max_tokens=max_tokens,
        user="",
        metadata={},
        service_tier="flex",
        logprobs=2,
    )


def limits(prompts: list[int], max_tokens: int | None, admitted: int) -> list[int]:
    session: Any = SimpleNamespace(description=DESCRIPTION)
    return output_limits(order(prompts, max_tokens), session, admitted)


@pytest.mark.parametrize(
    ("length", "code"), [(256, Code.CONTEXT_LENGTH_EXCEEDED), (200, Code.KV_POOL_EXCEEDED)]
)
def test_a_prompt_without_room_is_refused(length: int, code: Code) -> None:
    with pytest.raises(Denied) as denied:
        check_room(DESCRIPTION, [[1], [1] * length])
    assert denied.value.code is code
    check_room(DESCRIPTION, [[1], [1] * 199])


def test_the_gate_is_told_sums_of_what_can_be_used() -> None:
    facts = facts_of(order([10, 190], 50), "r", DESCRIPTION)
    assert (facts.prompt_tokens, facts.max_tokens) == (200, 50 + 10)
    assert (facts.service_tier, facts.features) == ("flex", {Feature.LOGPROBS})
    assert fleet_facts_of(order([10, 190], 50), DESCRIPTION) is None
    assert facts_of(order([10], 10**30), "r", DESCRIPTION).max_tokens == 190
    assert facts_of(order([10], None), "r", DESCRIPTION).max_tokens is None
    single = fleet_facts_of(order([10], None), DESCRIPTION)
    assert single is not None and single.max_request_tokens == 200


def test_each_choice_gets_what_it_asked_for_and_what_fits() -> None:
    assert limits([10], 50, 50) == [50]
    assert limits([10, 190], 50, 60) == [50, 10]
    assert limits([10], None, 1024) == [190]


def test_a_tenants_cap_is_shared_evenly() -> None:
    assert limits([10, 10, 10], 50, 90) == [30, 30, 30]
    assert limits([10, 10, 10], 50, 2) == [1, 1, 1]


def test_prompts_are_told_once_and_outputs_for_every_candidate() -> None:
    three = order([10, 190], 50, num_candidates=3)
    facts = facts_of(three, "r", DESCRIPTION)
    assert (facts.prompt_tokens, facts.max_tokens) == (200, 3 * (50 + 10))
    assert fleet_facts_of(order([10], 50, num_candidates=3), DESCRIPTION) is None
    session: Any = SimpleNamespace(description=DESCRIPTION)
    assert output_limits(three, session, 180) == [50, 50, 50, 10, 10, 10]
    assert output_limits(order([10], None, num_candidates=4), session, 100) == [25] * 4


def test_the_gate_is_told_every_feature_that_is_asked_for() -> None:
    everything = order([10], 5, num_candidates=2, constraint=Constraint(kind=ConstraintKind.JSON_OBJECT))
    asked = {Feature.LOGPROBS, Feature.N, Feature.STRUCTURED_OUTPUT}
    assert facts_of(everything, "r", DESCRIPTION).features == asked
