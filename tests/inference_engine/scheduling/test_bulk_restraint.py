"""Bulk beside what is urgent: a few tokens a step, in turns; alone: everything."""

from inference_engine.contract.requests import Generate, ServiceClass
from inference_engine.contract.sampling import SamplingParams
from inference_engine.scheduling.bulk_restraint import BulkRestraint
from inference_engine.scheduling.config import SchedulerConfig
from inference_engine.scheduling.request import Request
from inference_engine.scheduling.scheduler import Scheduler
from inference_engine.scheduling.step_plan import SampledToken, StepResult

INTERACTIVE, STANDARD, BULK = ServiceClass
CONFIG = SchedulerConfig(
    num_blocks=100, max_running=16, context_length=400, vocab_size=1000, cache_secret=b"s"
)


def generate(service_class: ServiceClass, name: str, num_prompt: int = 1) -> Generate:
    return Generate(
        request_id=name,
        prompt_ids=list(range(1, 1 + num_prompt)),
        sampling=SamplingParams(seed=1, max_tokens=50),
        tenant_id="t",
        key_id="k",
        service_class=service_class,
    )


def requests(service_class: ServiceClass, count: int) -> list[Request]:
    return [
        Request(
            generate(service_class, f"{service_class}-{arrival}"),
            arrival=arrival,
            max_tokens=5,
            end_ids=frozenset(),
        )
        for arrival in range(count)
    ]


def run_step(scheduler: Scheduler) -> None:
    plan = scheduler.plan()
    assert plan is not None
    scheduler.apply(plan, StepResult([SampledToken(7) if chunk.samples else None for chunk in plan.chunks]))


def test_alone_it_has_the_whole_step() -> None:
    assert BulkRestraint(8).hold_back(requests(BULK, 60), requests(BULK, 3)) is None


def test_without_bulk_nothing_changes() -> None:
    assert BulkRestraint(8).hold_back(requests(INTERACTIVE, 5), requests(STANDARD, 3)) is None


def test_beside_urgent_decodes_it_has_a_few_tokens_half_of_them_for_prompts() -> None:
    urgent, bulk, prompts = requests(STANDARD, 3), requests(BULK, 60), requests(BULK, 2)
    restrained = BulkRestraint(8).hold_back(urgent + bulk, prompts)
    assert restrained is not None
    assert len(restrained.bulk_decodes) == 4
    assert restrained == (urgent, [], restrained.bulk_decodes, prompts, 4)


def test_beside_an_urgent_prompt_it_has_one_token() -> None:
    urgent, prompt, bulk = requests(STANDARD, 3), requests(INTERACTIVE, 1), requests(BULK, 2)
    assert BulkRestraint(8).hold_back(urgent, prompt + bulk) == (urgent, prompt, [], bulk, 1)
    restrained = BulkRestraint(8).hold_back(urgent + bulk, prompt + bulk)
    assert restrained == (urgent, prompt, bulk[:1], bulk, 0)


def test_beside_an_urgent_prompt_alone_it_has_its_share() -> None:
    assert BulkRestraint(8).hold_back([], requests(INTERACTIVE, 1) + requests(BULK, 2)) is None


def test_its_decodes_take_turns() -> None:
    restraint, urgent, bulk = BulkRestraint(8), requests(STANDARD, 1), requests(BULK, 20)
    seen = []
    for _ in range(5):
        restrained = restraint.hold_back(urgent + bulk, [])
        assert restrained is not None
        seen += restrained.bulk_decodes
    assert sorted(seen.count(request) for request in bulk) == [2] * 20


def test_a_step_with_an_urgent_prompt_has_one_token_of_bulk() -> None:
    scheduler = Scheduler(CONFIG)
    scheduler.add(generate(INTERACTIVE, "decoding", 3))
    for _ in range(2):
        run_step(scheduler)
    for number in range(3):
        scheduler.add(generate(BULK, f"bulk-{number}", 200))
    scheduler.add(generate(INTERACTIVE, "new", 30))
    plan = scheduler.plan()
    assert plan is not None
    sizes = {chunk.request.request_id: len(chunk.token_ids) for chunk in plan.chunks}
    assert (sizes["decoding"], sizes["new"]) == (1, 30)
    assert sum(size for name, size in sizes.items() if name.startswith("bulk")) == 1
