"""Bulk beside what is urgent: a few tokens a step, in turns; alone: everything."""

from inference_engine.contract.requests import Generate, ServiceClass
from inference_engine.contract.sampling import SamplingParams
from inference_engine.scheduling.bulk_restraint import BulkRestraint
from inference_engine.scheduling.request import Request

INTERACTIVE, STANDARD, BULK = ServiceClass


def requests(service_class: ServiceClass, count: int) -> list[Request]:
    made = []
    for arrival in range(count):
        generate = Generate(
            request_id=f"{service_class}-{arrival}",
            prompt_ids=[1],
            sampling=SamplingParams(seed=1, max_tokens=5),
            tenant_id="t",
            key_id="k",
            service_class=service_class,
        )
        made.append(Request(generate, arrival=arrival, max_tokens=5, end_ids=frozenset()))
    return made


def test_alone_it_has_the_whole_step() -> None:
    decodes, prefills = requests(BULK, 60), requests(BULK, 3)
    assert BulkRestraint(8).hold_back(decodes, prefills, 80) == (decodes, prefills, 80)


def test_without_bulk_nothing_changes() -> None:
    decodes, prefills = requests(INTERACTIVE, 5), requests(STANDARD, 3)
    assert BulkRestraint(8).hold_back(decodes, prefills, 80) == (decodes, prefills, 80)


def test_beside_urgent_decodes_it_has_a_few_tokens_half_of_them_for_prompts() -> None:
    urgent, bulk, prompts = requests(STANDARD, 3), requests(BULK, 60), requests(BULK, 2)
    decodes, prefills, budget = BulkRestraint(8).hold_back(urgent + bulk, prompts, 80)
    assert decodes[:3] == urgent
    assert len(decodes) == 3 + 4
    assert (prefills, budget) == (prompts, 4)


def test_beside_an_urgent_prompt_the_shares_of_prompts_are_what_they_always_are() -> None:
    urgent, prompt, bulk = requests(STANDARD, 3), requests(INTERACTIVE, 1), requests(BULK, 2)
    assert BulkRestraint(8).hold_back(urgent, prompt + bulk, 80) == (urgent, prompt + bulk, 80)


def test_its_decodes_take_turns() -> None:
    restraint, urgent, bulk = BulkRestraint(8), requests(STANDARD, 1), requests(BULK, 20)
    seen = [request for _ in range(5) for request in restraint.hold_back(urgent + bulk, [], 80)[0][1:]]
    assert sorted(seen.count(request) for request in bulk) == [2] * 20
