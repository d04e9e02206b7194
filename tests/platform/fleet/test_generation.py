"""Deltas that wait for a slow reader are joined, and lose nothing by it."""

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
