"""Which of the tokens sampled beside drafts hold."""

from inference_engine.contract.codes import Code
from inference_engine.contract.requests import Generate
from inference_engine.contract.sampling import SamplingParams
from inference_engine.execution.steps.verification import accepted, outcomes_of, step_result
from inference_engine.scheduling.request import Request
from inference_engine.scheduling.step_plan import SampledToken, ScheduledChunk

FAILED = SampledToken(-1, failure=Code.NON_FINITE_LOGITS)


def tokens(*ids: int) -> list[SampledToken]:
    return [SampledToken(id_) for id_ in ids]


def chunk(*ids: int, samples: bool = True, num_drafts: int = 0) -> ScheduledChunk:
    sampling = SamplingParams(seed=0, max_tokens=9)
    generate = Generate(request_id="r", prompt_ids=[1], sampling=sampling, tenant_id="t")
    request = Request(generate, arrival=1, max_tokens=9, end_ids=frozenset())
    return ScheduledChunk(request, 5, list(ids), [0], samples, num_drafts)


def test_tokens_hold_while_each_is_the_draft_that_follows() -> None:
    assert accepted(tokens(5, 6, 7, 8), [5, 6, 7]) == tokens(5, 6, 7, 8)
    assert accepted(tokens(5, 6, 9, 7), [5, 6, 7]) == tokens(5, 6, 9)
    assert accepted(tokens(4, 6, 7, 8), [5, 6, 7]) == tokens(4)


def test_nothing_holds_behind_a_failure() -> None:
    assert accepted([SampledToken(5), FAILED, SampledToken(7)], [5, -1]) == [SampledToken(5), FAILED]


def test_a_step_tells_one_token_a_chunk_or_those_that_hold_beside_drafts() -> None:
    chunks = [chunk(1), chunk(2, 3, samples=False), chunk(4, 5, 6, num_drafts=2), chunk(7)]
    outcomes = outcomes_of(chunks, tokens(10, 5, 11, 12, 13), lambda row, count: count)
    assert outcomes == {0: tokens(10), 1: tokens(5, 11), 4: tokens(13)}
    result = step_result(chunks, outcomes)
    assert result.sampled == [SampledToken(10), None, None, SampledToken(13)]
    assert result.verified == {2: tokens(5, 11)}


def test_rows_that_mean_nothing_are_not_looked_at() -> None:
    outcomes = outcomes_of([chunk(4, 5, 6, num_drafts=2)], tokens(5, 6, 7), lambda row, count: 2)
    assert outcomes == {0: tokens(5, 6)}
