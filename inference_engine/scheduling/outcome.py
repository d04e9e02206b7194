"""What one chunk's result does to its request: tokens, logprobs, and whether this was the end."""

from typing import NamedTuple

from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.events import TokenLogprobs
from inference_engine.contract.limits import BLOCK_SIZE

from .request import Request
from .step_plan import RequestUpdate, SampledToken, ScheduledChunk, StepPlan, StepResult


class GoneOn(NamedTuple):
    updates: list[RequestUpdate]
    """Of a token each."""
    filled: list[Request]
    """Those of them that have filled a block."""
    others: list[tuple[ScheduledChunk, SampledToken | None]]
    """What is still to be applied."""


def go_on(plan: StepPlan, result: StepResult) -> GoneOn:
    """Applies what nearly every chunk of every step is: one new token computed, and one sampled that ends
    nothing. Does in a few moves what `confirm` and `take_token` would."""
    gone_on = GoneOn([], [], [])
    for chunk, sampled in zip(plan.chunks, result.sampled, strict=True):
        request, start = chunk.request, chunk.start
        end = start + 1
        if (
            sampled is None
            or sampled.failure is not None
            or end != request.num_known
            or end > request.num_scheduled
            or start != request.num_reached
            or start < request.num_prompt
            or end + 1 >= request.max_known
            or sampled.token_id in request.stop_ids
            or not request.is_told_ids_alone
        ):
            gone_on.others.append((chunk, sampled))
            continue
        request.num_reached = request.num_computed = end
        request.num_known = end + 1
        request.output_ids.append(sampled.token_id)
        request.newest_ids = token_ids = [sampled.token_id]
        gone_on.updates.append(RequestUpdate(request, token_ids))
        if not end % BLOCK_SIZE:
            gone_on.filled.append(request)
    return gone_on


def confirm(chunk: ScheduledChunk) -> int:
    """The chunk is computed; what a preemption cut off meanwhile stays cut off. Returns how many of its
    tokens had been computed before."""
    return confirm_up_to(chunk, chunk.start + len(chunk.token_ids))


def confirm_up_to(chunk: ScheduledChunk, end: int) -> int:
    request = chunk.request
    num_again = 0
    if chunk.start < request.num_reached:
        num_again = min(end, request.num_reached) - chunk.start
        request.num_recomputed_tokens += num_again
    if end > request.num_reached:
        request.num_reached = end
    request.num_computed = end if end <= request.num_scheduled else request.num_scheduled
    return num_again


def keep_prompt_logprobs(plan: StepPlan, result: StepResult) -> None:
    """Those of positions that were computed again are known already."""
    for index, found in result.prompt_logprobs.items():
        chunk = plan.chunks[index]
        known = chunk.request.prompt_logprobs
        if known is not None:
            known += found[max(0, len(known) - chunk.start) :]


def hand_out_prompt_logprobs(update: RequestUpdate) -> None:
    request = update.request
    update.prompt_logprobs, request.prompt_logprobs = request.prompt_logprobs, None


def failure_of(chunk: ScheduledChunk, sampled: SampledToken | None) -> Code | None:
    if sampled is not None:
        return sampled.failure
    return Code.INTERNAL_ERROR if chunk.samples else None


def take_token(request: Request, sampled: SampledToken) -> RequestUpdate:
    """Append the sampled token, or end at it: an id that stops the request is never part of its output. A
    vector is the end."""
    if sampled.vector:
        return RequestUpdate(request, [], finish=FinishReason.STOP, vector=sampled.vector)
    token_id, output_ids = sampled.token_id, request.output_ids
    if token_id in request.stop_ids and len(output_ids) >= request.sampling.min_tokens:
        return RequestUpdate(request, [], finish=FinishReason.STOP, stop_token_id=token_id)
    request.append_output(token_id)
    logprobs = _logprobs(sampled) if request.wants_logprobs else None
    if len(output_ids) < request.max_tokens:
        return RequestUpdate(request, [token_id], logprobs)
    return RequestUpdate(request, [token_id], logprobs, FinishReason.LENGTH)


def _logprobs(sampled: SampledToken) -> list[TokenLogprobs] | None:
    return None if sampled.logprob is None else [TokenLogprobs(logprob=sampled.logprob, top=sampled.top)]
