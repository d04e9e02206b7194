"""The choices of one admitted request, from Generate to their last word."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, TypeVar

import msgspec

from admission.admission import Admission
from fleet.failover import Route
from fleet.failures import GenerationFailed
from gateway.orders.order import Order
from gateway.orders.room import output_limits
from gateway.runs.answer import usage_of
from gateway.runs.choice import Choice, ChoiceTools, Piece
from gateway.runs.ending import note_ending, queue_timer, withdrawn
from gateway.runs.last_words import last_words
from inference_engine.contract.codes import Code
from inference_engine.contract.events import Delta, Finished
from inference_engine.contract.requests import Generate, ServiceClass
from text.model_text import ModelText

T = TypeVar("T")

Emit = Callable[[Choice, Piece], Awaitable[None]]

RECORD_INTERVAL_S = 0.2
BULK_TOKENS_PER_DELTA = 32
"""Should the engine die, another one makes as many again."""


class Run:
    """`async with`: on the way out everything is aborted and counted, however it went."""

    def __init__(self, order: Order, admission: Admission, route: Route, text: ModelText) -> None:
        self._admission = admission
        self._recorded_at = 0.0
        self._first_token_at: float | None = None
        limits = output_limits(order, route, admission.max_tokens)
        self.choices = [self._start(order, route, text, index, limit) for index, limit in enumerate(limits)]
        admission.record(replica=route.record.replica_id)
        route.on_move = lambda replica_id: admission.record(replica=replica_id)
        admission.on_end(self.end)

    def _start(self, order: Order, route: Route, text: ModelText, index: int, max_tokens: int) -> Choice:
        admission = self._admission
        number, candidate = divmod(index, order.num_candidates)
        prompt_ids = order.prompts[number]
        message = Generate(
            request_id=f"{admission.request_id}-{index}",
            prompt_ids=prompt_ids,
            choice=candidate,
            group_id=f"{admission.request_id}-{number}" if is_group(order) else "",
            sampling=msgspec.structs.replace(order.sampling, max_tokens=max_tokens),
            constraint=order.constraint,
            tenant_id=admission.principal.tenant_id,
            key_id=admission.principal.key_id,
            service_class=admission.service_class,
            weight=admission.weight,
            reservation_key=admission.reservation_key,
            tokens_per_delta=BULK_TOKENS_PER_DELTA if is_unwatched(order, admission.service_class) else 1,
        )
        decoder = text.stream_decoder(
            order.stop,
            include_stop=order.include_stop,
            skip_special_tokens=order.skip_special_tokens,
            min_tokens=order.sampling.min_tokens,
            show_tool_markers=order.tools is not None,
        )
        return Choice(
            index,
            prompt_ids,
            route.generate(message),
            decoder,
            counts_prompt=candidate == 0,
            constraint_param=order.constraint_param,
            tools=_tools_of(order, text),
        )

    async def __aenter__(self) -> "Run":
        self._queue_timer = queue_timer(self._admission, self._abort)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._queue_timer.cancel()
        self._say_ending(error)
        self._abort()
        self._record()
        await self._hear_last_words()

    def _say_ending(self, error: BaseException | None) -> None:
        broken = error if isinstance(error, GenerationFailed) else self._break()
        reasons = {choice.finish_reason or "" for choice in self.choices}
        note_ending(self._admission, error, broken, ",".join(sorted(reasons)))

    def _break(self) -> GenerationFailed | None:
        """Why a generation broke off that the handler, stuck in a send, never got to read."""
        errors = (choice.generation.error for choice in self.choices)
        return next((error for error in errors if error is not None), None)

    async def _hear_last_words(self) -> None:
        """What the engine made beyond what counts; and that it took a request that nobody waited for."""
        overrun, queue_ms = 0, None
        words = await last_words([choice.generation for choice in self.choices])
        for choice, last in zip(self.choices, words, strict=True):
            if last is not None:
                choice.note_accepted(last.usage.cached_tokens)
                overrun += max(0, last.usage.output_tokens - choice.num_tokens)
                queue_ms = max(queue_ms or 0.0, last.timeline.queued_ms)
        self._record()
        self._admission.record(overrun_tokens=overrun, queue_ms=queue_ms)

    def end(self, code: Code) -> None:
        """The platform takes the admission back: the stream ends with an error."""
        self._abort(withdrawn(code))

    def _abort(self, error: GenerationFailed | None = None) -> None:
        for choice in self.choices:
            choice.generation.abort(error)

    async def accepted(self) -> None:
        """Wait until the engine has taken every choice. Raises Denied."""
        await for_each(self.choices, lambda choice: choice.accepted())
        self._record()

    async def pump(self, emit: Emit) -> None:
        """Hand every piece of every choice to `emit`, in order within a choice. Raises Denied."""
        await for_each(self.choices, lambda choice: self._pump(choice, emit))

    async def _pump(self, choice: Choice, emit: Emit) -> None:
        async for event in choice.generation:
            if type(event) is Delta:
                self._queue_timer.cancel()
                await emit(choice, choice.take(event))
                self._note_progress()
                if choice.finish_reason is not None:
                    return
            elif type(event) is Finished:
                await emit(choice, choice.end(event))

    def _note_progress(self) -> None:
        now = time.monotonic()
        if now - self._recorded_at > RECORD_INTERVAL_S:
            self._recorded_at = now
            self._first_token_at = self._first_token_at or time.time()
            self._record()

    def _record(self) -> None:
        accepted = [choice for choice in self.choices if choice.is_accepted]
        self._admission.record(
            prompt_tokens=sum(choice.prompt_tokens for choice in accepted),
            cached_tokens=sum(choice.cached_tokens for choice in accepted),
            output_tokens=sum(choice.num_tokens for choice in accepted),
            first_token_at=self._first_token_at,
        )

    def usage(self) -> dict[str, object]:
        return usage_of(self.choices)


def _tools_of(order: Order, text: ModelText) -> ChoiceTools | None:
    if order.tools is None:
        return None
    return ChoiceTools(text.tool_parser(order.tools.names), order.tools.is_parallel)


def is_group(order: Order) -> bool:
    """Several choices share the computed prompt, unless each must see all of it computed."""
    return order.num_candidates > 1 and order.sampling.prompt_logprobs is None


def is_unwatched(order: Order, service_class: ServiceClass) -> bool:
    """Nobody sees its tokens as they come, and none of them can be the one to stop at."""
    is_free_to_end = not order.stop and order.tools is None
    return service_class is ServiceClass.BULK and not order.stream and is_free_to_end


async def for_each(subjects: Sequence[T], work: Callable[[T], Coroutine[Any, Any, None]]) -> None:
    """Side by side; the first failure ends the others."""
    if len(subjects) == 1:
        await work(subjects[0])
        return
    tasks = [asyncio.create_task(work(subject)) for subject in subjects]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
