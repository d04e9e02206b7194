"""One choice: deltas in, pieces of text out, the engine told to stop at a stop string."""

from typing import Any

import pytest

from fleet.generation import Generation
from gateway.runs.choice import Choice
from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.events import Accepted, Delta, Finished, Refused, TokenLogprobs, Usage
from tenants.errors import Denied
from text.decoding import Vocabulary
from text.stream_decoder import StreamDecoder

VOCABULARY = Vocabulary([bytes([65 + index]) for index in range(26)], [])


def choice(*stops: str) -> tuple[Choice, list[str]]:
    aborted: list[str] = []
    generation = Generation("r", 0, lambda: aborted.append("r"))
    return Choice(0, [1, 2], generation, StreamDecoder(VOCABULARY, stops)), aborted


def delta(*token_ids: int, **fields: Any) -> Delta:
    return Delta(request_id="r", token_ids=list(token_ids), **fields)


def finished(reason: FinishReason, code: Code | None = None) -> Finished:
    return Finished(request_id="r", reason=reason, code=code, usage=Usage(prompt_tokens=2, output_tokens=3))


def test_tokens_become_text() -> None:
    one, aborted = choice()
    assert (one.take(delta(0, 1)).text, one.take(delta(2)).text) == ("AB", "C")
    assert one.end(finished(FinishReason.LENGTH)).text == ""
    assert (one.num_tokens, one.finish_reason, aborted) == (3, "length", [])


def test_a_stop_string_ends_it_in_the_middle_of_a_delta() -> None:
    one, aborted = choice("CD")
    logprobs = [TokenLogprobs(logprob=-1.0 - i) for i in range(6)]
    assert one.take(delta(0, 1, 2)).text == "AB"
    piece = one.take(delta(3, 4, 5, logprobs=logprobs[:3]))
    assert (piece.text, piece.token_ids, piece.logprobs) == ("", [3], logprobs[:1])
    assert (one.num_tokens, one.finish_reason, aborted) == (4, "stop", ["r"])


def test_what_was_held_back_comes_at_the_end() -> None:
    one, _ = choice("CDE")
    assert one.take(delta(0, 2, 3)).text == "A"
    assert one.end(finished(FinishReason.STOP)).text == "CD"
    assert one.finish_reason == "stop"


@pytest.mark.parametrize("code", [Code.DEADLINE_EXCEEDED, Code.SLOW_READER, None])
def test_an_engine_that_gives_up_is_an_error(code: Code | None) -> None:
    one, _ = choice()
    with pytest.raises(Denied) as denied:
        one.end(finished(FinishReason.ABORTED, code))
    assert denied.value.code is (code or Code.INTERNAL_ERROR)


async def test_acceptance_and_refusal() -> None:
    one, _ = choice()
    one.generation.put(Accepted(request_id="r", prompt_tokens=2, cached_tokens=1, max_tokens=3))
    await one.accepted()
    assert (one.is_accepted, one.cached_tokens) == (True, 1)
    other, _ = choice()
    other.generation.put(Refused(request_id="r", code=Code.QUEUE_FULL, message="full", param="model"))
    with pytest.raises(Denied) as denied:
        await other.accepted()
    assert (denied.value.code, denied.value.param, other.is_accepted) == (Code.QUEUE_FULL, "model", False)


async def test_a_refusal_is_told_by_its_exact_code() -> None:
    one, _ = choice()
    one.generation.put(Refused(request_id="r", code=Code.QUEUE_FULL, exact_code=Code.TENANT_QUEUE_FULL))
    with pytest.raises(Denied) as denied:
        await one.accepted()
    assert denied.value.code is Code.TENANT_QUEUE_FULL


async def test_a_refused_constraint_is_named_as_the_client_knows_it() -> None:
    one, _ = choice()
    one.generation.put(Refused(request_id="r", code=Code.INVALID_REQUEST, message="no", param="constraint"))
    with pytest.raises(Denied) as denied:
        await one.accepted()
    assert denied.value.param == "response_format"


def test_logprobs_of_the_prompt_come_once_however_often_they_are_sent() -> None:
    one, _ = choice()
    of_prompt = [TokenLogprobs(logprob=-1.0)]
    assert one.take(delta(prompt_logprobs=of_prompt)).prompt_logprobs == of_prompt
    assert one.take(delta(1, prompt_logprobs=of_prompt)).prompt_logprobs is None
    assert one.num_tokens == 1
