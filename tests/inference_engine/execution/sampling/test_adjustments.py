"""What is remembered of a request is what counting all of its tokens again would give."""

import random

from inference_engine.contract.requests import Generate
from inference_engine.contract.sampling import SamplingParams
from inference_engine.execution.sampling.adjustments import Adjustment, Adjustments
from inference_engine.scheduling.request import PENDING_TOKEN, Request
from inference_engine.scheduling.step_plan import ScheduledChunk

PROMPT = [5, 6, 5, 7]


def request(request_id: str = "a", outputs: list[int] | None = None, **params: object) -> Request:
    sampling = SamplingParams(seed=1, max_tokens=500, **(params or {"repetition_penalty": 1.2}))
    generate = Generate(
        request_id=request_id,
        prompt_ids=PROMPT,
        output_ids=outputs or [],
        sampling=sampling,
        tenant_id="t",
    )
    return Request(generate, arrival=1, max_tokens=500, end_ids=frozenset())


def counts(adjustment: Adjustment | None) -> dict[int, int]:
    assert adjustment is not None
    history = adjustment.history
    return dict(zip(history.ids.tolist(), history.counts.tolist(), strict=True))


def whole(one: Request) -> ScheduledChunk:
    return ScheduledChunk(one, 0, one.known_ids, [0], samples=True)


def decode(one: Request, ids: list[int]) -> ScheduledChunk:
    return ScheduledChunk(one, one.num_known - 1 + (ids == [PENDING_TOKEN]), ids, [0], samples=True)


def test_prompt_tokens_count_only_for_repetition() -> None:
    kept = Adjustments()
    repeats, presence = request("a"), request("b", presence_penalty=1.0)
    chunks = [whole(repeats), whole(presence)]
    found = kept.of_step(chunks, [chunk.token_ids for chunk in chunks])
    assert [counts(one) for one in found] == [{5: 0, 6: 0, 7: 0}, {}]


def test_replayed_outputs_are_outputs() -> None:
    one = request("a", [9, 5, 9])
    [found] = Adjustments().of_step([whole(one)], [one.known_ids])
    assert counts(found) == {5: 1, 6: 0, 7: 0, 9: 2}


def test_nothing_is_kept_of_plain_requests_and_of_chunks_that_do_not_sample() -> None:
    plain, penalised = request("a", temperature=0.5), request("b")
    chunks = [whole(plain), ScheduledChunk(penalised, 0, PROMPT[:2], [0], samples=False)]
    assert Adjustments().of_step(chunks, [PROMPT, PROMPT[:2]]) == [None, None]


def test_step_by_step_gives_the_same_as_from_scratch_with_pending_tokens_and_pauses() -> None:
    """Lag 1: the last token is known to the runner before it is among the request's outputs."""
    chance, one, kept = random.Random(3), request("a"), Adjustments()
    kept.of_step([whole(one)], [PROMPT])
    pending: int | None = chance.randrange(200)
    for _ in range(300):
        if pending is None:
            pending = chance.randrange(200)
        chunk = decode(one, [PENDING_TOKEN])
        if chance.random() < 0.1:  # preempted, or stalled: the step goes on without it
            assert kept.of_step([], []) == []
        [found] = kept.of_step([chunk], [[pending]])
        one.append_output(pending)
        pending = None
        [anew] = Adjustments().of_step([decode(one, one.output_ids[-1:])], [one.output_ids[-1:]])
        assert counts(found) == counts(anew)
        assert counts(found) == {
            token_id: one.output_ids.count(token_id) for token_id in {*PROMPT, *one.output_ids}
        }
    assert len(counts(found)) > 64


def test_an_attempt_that_starts_anew_does_not_inherit() -> None:
    kept = Adjustments()
    first, second = request("a"), request("a")
    kept.of_step([whole(first)], [PROMPT])
    first.append_output(9)
    kept.of_step([decode(first, [9])], [[9]])
    [found] = kept.of_step([whole(second)], [PROMPT])
    assert counts(found) == {5: 0, 6: 0, 7: 0}


def test_nothing_is_left_of_requests_that_are_gone() -> None:
    kept = Adjustments()
    kept.of_step([whole(request(str(number))) for number in range(50)], [PROMPT] * 50)
    kept.of_step([], [])
    assert kept._kept == {}


def test_biases_are_kept_as_arrays() -> None:
    one = request("a", logit_bias={9: 1.5, 3: -2.0})
    [found] = Adjustments().of_step([whole(one)], [PROMPT])
    assert found is not None
    assert dict(zip(found.bias_ids.tolist(), found.bias.tolist(), strict=True)) == {9: 1.5, 3: -2.0}
