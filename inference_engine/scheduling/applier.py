"""One step's results: what is computed, sampled and over, request by request."""

from inference_engine.contract.codes import Code, FinishReason

from .drafting.drafter import Drafter
from .drafting.verified import take_verified
from .inspection import Totals
from .kv_tables import KVTables
from .outcome import (
    confirm,
    failure_of,
    go_on,
    hand_out_prompt_logprobs,
    keep_prompt_logprobs,
    take_token,
)
from .request import Request, RequestState
from .roster import Roster
from .step_plan import RequestUpdate, SampledToken, ScheduledChunk, StepPlan, StepResult


class StepApplier:
    def __init__(self, roster: Roster, kv: KVTables, drafter: Drafter, totals: Totals) -> None:
        self._roster = roster
        self._kv = kv
        self._drafter = drafter
        self._totals = totals

    def apply(self, plan: StepPlan, result: StepResult) -> list[RequestUpdate]:
        """Requests that have ended since the plan get no update."""
        if result.prompt_logprobs:
            keep_prompt_logprobs(plan, result)
        updates, filled, others = go_on(plan, result)
        num_outputs = len(updates)
        for request in filled:
            self._kv.publish(request)
        for chunk, sampled in others:
            if chunk.request.state is not RequestState.FINISHED:
                update = self._settle(chunk, sampled)
                if update is not None:
                    updates.append(update)
                    num_outputs += len(update.token_ids)
        for index, tokens in result.verified.items():
            if plan.chunks[index].request.state is not RequestState.FINISHED:
                updates.append(self._settle_drafts(plan.chunks[index], tokens))
                num_outputs += len(updates[-1].token_ids)
        self._totals.num_steps += 1
        self._totals.num_computed_tokens += plan.num_tokens
        self._totals.output_tokens += num_outputs
        self._roster.queue.note_outputs(num_outputs)
        return updates

    def end(self, request: Request, reason: FinishReason, code: Code | None) -> None:
        """Whatever it is doing: out of its place, and its blocks back."""
        self._roster.leave(request, reason, code)
        self._drafter.leave(request)
        self._kv.cut(request, 0)
        self._totals.count_end(reason)

    def _settle(self, chunk: ScheduledChunk, sampled: SampledToken | None) -> RequestUpdate | None:
        request = chunk.request
        if chunk.num_drafts:
            return None if sampled is None else self._settle_drafts(chunk, [sampled])
        self._totals.num_recomputed_tokens += confirm(chunk)
        failure = failure_of(chunk, sampled)
        if failure is not None:
            self._kv.forget(request)
            self.end(request, FinishReason.FAILED, failure)
            return RequestUpdate(request, [], finish=FinishReason.FAILED, code=failure)
        self._kv.publish(request)
        if request.group_id:
            self._roster.call_followers(request)
        if sampled is None or not chunk.samples:
            return None
        update = take_token(request, sampled)
        if request.prompt_logprobs is not None:
            hand_out_prompt_logprobs(update)
        if update.finish is not None:
            self.end(request, update.finish, None)
        return update

    def _settle_drafts(self, chunk: ScheduledChunk, tokens: list[SampledToken]) -> RequestUpdate:
        request = chunk.request
        self._drafter.learn(chunk, len(tokens) - 1)
        update, num_again = take_verified(chunk, tokens)
        self._totals.num_recomputed_tokens += num_again
        if update.finish is FinishReason.FAILED:
            self._kv.forget(request)
        else:
            self._kv.publish(request)
            if request.group_id:
                self._roster.call_followers(request)
            if request.prompt_logprobs is not None:
                hand_out_prompt_logprobs(update)
        if update.finish is not None:
            self.end(request, update.finish, update.code)
        return update
