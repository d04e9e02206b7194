import pytest

from inference_engine.contract.codes import Code
from inference_engine.contract.requests import Generate
from inference_engine.contract.sampling import SamplingParams
from inference_engine.execution.sampling.adjustments import Adjustment
from inference_engine.execution.steps.step_inputs import PendingTokens, build_inputs
from inference_engine.scheduling.request import PENDING_TOKEN, Request
from inference_engine.scheduling.step_plan import SampledToken, ScheduledChunk, StepPlan, StepResult

END_ID = 2


def request(
    request_id: str = "a", *, num_prompt: int = 40, min_tokens: int = 0, **sampling: object
) -> Request:
    params = SamplingParams(seed=7, max_tokens=9, min_tokens=min_tokens, **sampling)
    generate = Generate(
        request_id=request_id,
        prompt_ids=list(range(100, 100 + num_prompt)),
        sampling=params,
        choice=3,
        tenant_id="t",
    )
    return Request(generate, arrival=1, max_tokens=9, end_ids=frozenset({END_ID}))


def test_chunks_are_packed_one_after_another_and_padded_to_their_bucket() -> None:
    decode = ScheduledChunk(request("b"), 16, [7], [4, 9], samples=True)
    prefill = ScheduledChunk(request("a"), 0, [*range(70)], [1, 2, 3, 5, 6], samples=False)
    inputs = build_inputs([decode, prefill], [decode.token_ids, prefill.token_ids], [None, None])
    assert inputs.token_ids.tolist() == [7, *range(70), *[0] * 9]
    assert inputs.metadata.positions.tolist() == [16, *range(70), *[0] * 9]
    assert inputs.metadata.slot_mapping.tolist()[:3] == [9 * 16, 16, 17]
    assert inputs.metadata.slot_mapping.tolist()[-9:] == [-1] * 9
    assert inputs.sampled_rows.tolist() == [0]


def test_the_last_row_of_each_sampling_chunk_is_sampled_at_the_next_position() -> None:
    chunks = [
        ScheduledChunk(request("a"), 32, [1] * 8, [0, 1, 2], samples=True),
        ScheduledChunk(request("b"), 0, [1] * 5, [3], samples=False),
        ScheduledChunk(request("c"), 41, [1], [4, 5, 6], samples=True),
    ]
    inputs = build_inputs(chunks, [chunk.token_ids for chunk in chunks], [None] * 3)
    assert inputs.sampled_rows.tolist() == [7, 13]
    assert [(row.position, row.choice) for row in inputs.sampling] == [(40, 3), (42, 3)]


def test_a_row_is_sampled_after_the_last_known_token_and_after_each_draft() -> None:
    words = ((7, 8, 50), (8, 9, 60))
    chunks = [
        ScheduledChunk(request("a"), 0, [1] * 3, [3], samples=False),
        ScheduledChunk(request("b", bad_words_ids=words, min_tokens=3), 41, [7, 8, 9], [4, 5, 6], True, 2),
        ScheduledChunk(request("c"), 40, [1], [7, 8, 9], samples=True),
    ]
    adjustment = Adjustment(SamplingParams(seed=0, max_tokens=9), [])
    adjustment.history.add(7)
    adjustments = [None, adjustment, None]
    inputs = build_inputs(chunks, [chunk.token_ids for chunk in chunks], adjustments)
    assert inputs.sampled_rows.tolist() == [3, 4, 5, 6]
    assert [row.position for row in inputs.sampling] == [42, 43, 44, 41]
    assert [row.forbid_ids for row in inputs.sampling[:3]] == [{END_ID}, {50}, {60}]
    histories = [row.adjustment.history for row in inputs.sampling[:3] if row.adjustment]
    assert [history.ids.tolist() for history in histories] == [[7], [7, 8], [7, 8, 9]]


@pytest.mark.parametrize(("position", "is_forbidden"), [(40, True), (41, True), (42, False)])
def test_ends_are_forbidden_while_outputs_are_fewer_than_min_tokens(
    position: int, is_forbidden: bool
) -> None:
    short = request(min_tokens=2, stop_token_ids=(5,))
    chunk = ScheduledChunk(short, position - 1, [1], [0, 1, 2], samples=True)
    (row,) = build_inputs([chunk], [[1]], [None]).sampling
    assert row.forbid_ids == (frozenset({END_ID, 5}) if is_forbidden else frozenset())


def test_an_end_id_that_is_ignored_is_never_forbidden() -> None:
    chunk = ScheduledChunk(request(min_tokens=4, ignore_eos=True), 39, [1], [0, 1, 2], samples=True)
    assert build_inputs([chunk], [[1]], [None]).sampling[0].forbid_ids == frozenset()


def test_a_pending_token_is_the_one_its_request_sampled_in_the_step_before() -> None:
    first, second = request("a"), request("b")
    pending = PendingTokens()
    plan = StepPlan(
        1,
        [
            ScheduledChunk(first, 0, [1], [0], samples=True),
            ScheduledChunk(second, 0, [1], [1], samples=False),
        ],
    )
    pending.remember(plan, StepResult([SampledToken(55), None]))
    assert pending.resolve(ScheduledChunk(first, 1, [PENDING_TOKEN], [0], samples=True)) == [55]
    assert pending.resolve(ScheduledChunk(first, 0, [9, PENDING_TOKEN], [0], samples=True)) == [9, 55]
    assert pending.resolve(ScheduledChunk(second, 0, [3, 4], [1], samples=True)) == [3, 4]


def test_a_request_that_failed_in_the_step_before_still_gets_an_id_of_the_vocabulary() -> None:
    """Its chunk in flight will be dropped, but it must not take the others of its step down."""
    failed, lost = request("a"), request("b")
    pending = PendingTokens()
    plan = StepPlan(1, [ScheduledChunk(each, 0, [1], [0], samples=True) for each in (failed, lost)])
    pending.remember(plan, StepResult([SampledToken(-1, failure=Code.NON_FINITE_LOGITS), SampledToken(44)]))
    assert pending.resolve(ScheduledChunk(failed, 1, [PENDING_TOKEN], [0], samples=True)) == [0]
    pending.forget()
    assert pending.resolve(ScheduledChunk(lost, 1, [PENDING_TOKEN], [0], samples=True)) == [0]
