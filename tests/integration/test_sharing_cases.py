"""Cases 23 and 24 of the list of public faults on the real engine, counted in steps: scheduler and model, no
server and no clock. `make bench-flood` takes the times of case 24 for a minute; test_simulated_engine shows
that first come, first served fails it."""

from dataclasses import dataclass, field

import pytest
from tokenizers import Tokenizer

from engine_harness import EngineHarness, RecordingRunner, Trace
from inference_engine.contract.codes import FinishReason
from tiny_models import save_tiny_llama

TEXT = (
    "The ferry left at dawn with nine passengers, a crate of lemons and a letter that nobody had signed. " * 8
)
PREFILL_BUDGET = 40


@pytest.fixture(scope="module", params=["tiny", "smollm2"])
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RecordingRunner:
    if request.param == "tiny":
        folder, backend = save_tiny_llama(tmp_path_factory.mktemp("llama")), "reference"
    else:
        request.getfixturevalue("compiler")
        folder, backend = request.getfixturevalue("smollm2_dir"), "cpu"
    runner = RecordingRunner.load(
        folder, backend=backend, dtype="bfloat16", num_blocks=64, max_running=16, max_step_tokens=256
    )
    runner.warm()
    return runner


@pytest.fixture(scope="module")
def ids(smollm2_dir) -> list[int]:
    return [each % 200 for each in Tokenizer.from_file(str(smollm2_dir / "tokenizer.json")).encode(TEXT).ids]


@dataclass
class Stepper:
    """Steps an engine and notes after how many each request had its first token."""

    harness: EngineHarness
    num_steps: int = 0
    came_at: dict[int, int] = field(default_factory=dict)
    waits: dict[int, int] = field(default_factory=dict)

    def add(self, prompt_ids: list[int], tenant_id: str, max_tokens: int) -> Trace:
        trace = self.harness.add(prompt_ids, tenant_id=tenant_id, max_tokens=max_tokens, ignore_eos=True)
        self.came_at[id(trace)] = self.num_steps
        return trace

    def step(self) -> None:
        self.harness.step()
        self.num_steps += 1
        for trace in self.harness.traces.values():
            if trace.token_ids and id(trace) not in self.waits:
                self.waits[id(trace)] = self.num_steps - self.came_at[id(trace)]

    def wait_of(self, trace: Trace) -> int:
        return self.waits[id(trace)]


def test_case_23_light_requests_beside_one_of_most_of_the_pool(
    loaded: RecordingRunner, ids: list[int]
) -> None:
    """The heavy one has 19 of 24 blocks in the end. A light one needs a block, so when all places are taken
    by light ones no more than 21 are in the way. The bound: every prompt there is once through the budget,
    and one turn of the others' outputs for each round that places and blocks make of twenty."""
    engine = Stepper(
        EngineHarness.on_fresh_pool(loaded, num_blocks=24, policy="fair", prefill_budget=PREFILL_BUDGET)
    )
    heavy = engine.add(ids[:176], "heavy", max_tokens=120)
    engine.step()
    light = [engine.add(ids[number : number + 10], "light", max_tokens=6) for number in range(20)]
    while engine.harness.scheduler.has_work():
        engine.step()
    num_rounds = -(-20 // (24 - 19))
    bound = -(-(176 + 20 * 10) // PREFILL_BUDGET) + num_rounds * (6 + 1)
    assert max(engine.wait_of(trace) for trace in light) <= bound
    assert [trace.finish for trace in (heavy, *light)] == [FinishReason.LENGTH] * 21
    assert len(heavy.token_ids) == 120


def flooded(loaded: RecordingRunner, ids: list[int]) -> list[int]:
    """Steps to the first token of a request every ten steps, beside 64 in flight of another tenant."""
    engine = Stepper(
        EngineHarness.on_fresh_pool(loaded, num_blocks=200, policy="fair", prefill_budget=PREFILL_BUDGET)
    )
    flood: list[Trace] = []
    singles: list[Trace] = []
    for number in range(100):
        while sum(trace.finish is None for trace in flood) < 64:
            start = len(flood) % 40
            flood.append(engine.add(ids[start : start + 20 + start % 3 * 15], "flood", max_tokens=24 + start))
        if number >= 20 and number % 10 == 0:
            singles.append(engine.add(ids[number : number + 12], "single", max_tokens=4))
        engine.step()
    return [engine.waits.get(id(trace), 1_000) for trace in singles]


def test_case_24_a_request_now_and_then_beside_a_flood_has_its_first_token_at_once(
    loaded: RecordingRunner, ids: list[int]
) -> None:
    waits = flooded(loaded, ids)
    assert len(waits) == 8
    assert sorted(waits)[4] <= 1
    assert max(waits) <= 2
