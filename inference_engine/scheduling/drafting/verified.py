"""What becomes of a request whose drafts were verified: several tokens, or its end in the middle of them."""

from inference_engine.contract.codes import FinishReason
from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.scheduling.outcome import confirm_up_to, take_token
from inference_engine.scheduling.request import Request
from inference_engine.scheduling.step_plan import RequestUpdate, SampledToken, ScheduledChunk


def take_verified(chunk: ScheduledChunk, tokens: list[SampledToken]) -> tuple[RequestUpdate, int]:
    """Append the tokens that hold, up to one that ends the request, and confirm what is computed of them.
    Returns how many tokens had been computed before, too."""
    update, num_taken = _take(chunk.request, tokens)
    return update, _confirm(chunk, num_taken)


def _take(request: Request, tokens: list[SampledToken]) -> tuple[RequestUpdate, int]:
    """The update, and the number of tokens looked at: one that stops the request is among them."""
    update = RequestUpdate(request, [], [] if request.wants_logprobs else None)
    for index, token in enumerate(tokens):
        if token.failure is not None:
            update.finish, update.code = FinishReason.FAILED, token.failure
            return update, index
        one = take_token(request, token)
        update.token_ids += one.token_ids
        if update.logprobs is not None:
            update.logprobs += one.logprobs or []
        update.finish, update.stop_token_id = one.finish, one.stop_token_id
        if one.finish is not None:
            return update, index + 1
    return update, len(tokens)


def _confirm(chunk: ScheduledChunk, num_taken: int) -> int:
    """The last known token is computed, and each draft that was sampled and taken. What a preemption cut off
    meanwhile stays cut off: at most as much is computed as there are blocks left."""
    request, end = chunk.request, chunk.start + max(1, num_taken)
    if request.num_scheduled == chunk.start + 1:
        request.num_scheduled = min(end, len(request.block_table) * BLOCK_SIZE)
    return confirm_up_to(chunk, end)
