"""Deltas that wait for a slow reader are joined, and lose nothing by it; an abort ends the events."""

import pytest

from fleet.failures import EngineLost, SlowReader
from fleet.generation import Generation
from inference_engine.contract.codes import FinishReason
from inference_engine.contract.events import Delta, Finished, TokenLogprobs, Usage


async def test_joined_deltas_keep_their_tokens_and_logprobs_and_those_of_the_prompt() -> None:
    generation = Generation("r", 0, lambda: None)
    one, other = TokenLogprobs(logprob=-1.0), TokenLogprobs(logprob=-2.0)
    generation.put(Delta(request_id="r", token_ids=[1], logprobs=[one], prompt_logprobs=[other]))
    generation.put(Delta(request_id="r", token_ids=[2], logprobs=[other]))
    usage = Usage(prompt_tokens=2, output_tokens=2)
    generation.put(Finished(request_id="r", reason=FinishReason.LENGTH, usage=usage))
    events = [event async for event in generation]
    assert events[0] == Delta(
        request_id="r", token_ids=[1, 2], logprobs=[one, other], prompt_logprobs=[other]
    )
    assert len(events) == 2


async def test_what_was_aborted_ends_plainly_though_its_engine_is_lost_before_the_reader_looks() -> None:
    generation = Generation("r", 0, lambda: None)
    generation.abort()
    generation.lose(EngineLost("gone"))
    assert [event async for event in generation] == []
    assert (await generation.last_word(), generation.error) == (None, None)


async def test_what_was_aborted_for_a_reason_ends_with_it_though_its_engine_is_lost() -> None:
    generation = Generation("r", 0, lambda: None)
    generation.abort(SlowReader(5))
    generation.lose(EngineLost("gone"))
    with pytest.raises(SlowReader):
        await anext(generation)
