"""The inputs of one admitted request, from Generate to their vectors: some at a time, all or nothing."""

from collections import deque
from types import TracebackType

from admission.admission import Admission
from fleet.failover import Route, UnbrokenGeneration
from fleet.failures import GenerationFailed
from gateway.embeddings.order import EmbeddingOrder
from gateway.runs.ending import note_ending, queue_timer, withdrawn
from gateway.runs.last_words import last_words
from gateway.runs.run import for_each
from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.events import Accepted, Finished, Refused
from inference_engine.contract.requests import Generate
from inference_engine.contract.sampling import SamplingParams
from tenants.errors import Denied

MAX_AT_ONCE = 64
"""Inputs that an engine has of one request, if it runs so many."""
QUEUE_FULL = (Code.QUEUE_FULL, Code.TENANT_QUEUE_FULL)

_NOTHING_SAMPLED = SamplingParams(seed=0, max_tokens=1)


class EmbeddingRun:
    """`async with`: on the way out everything is aborted, however it went."""

    def __init__(self, order: EmbeddingOrder, admission: Admission, route: Route) -> None:
        self._order, self._admission, self._route = order, admission, route
        self._waiting = deque(range(len(order.inputs)))
        self._open: dict[int, UnbrokenGeneration] = {}
        self._unheard: list[UnbrokenGeneration] = []
        """Given up before their engine had said that it took them."""
        self._vectors: list[bytes] = [b""] * len(order.inputs)
        self._prompt_tokens = self.cached_tokens = 0
        self._queue_ms = 0.0
        admission.record(replica=route.record.replica_id)
        route.on_move = lambda replica_id: admission.record(replica=replica_id)
        admission.on_end(self._end)

    async def __aenter__(self) -> "EmbeddingRun":
        self._queue_timer = queue_timer(self._admission, self._abort)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._queue_timer.cancel()
        broken = error if isinstance(error, GenerationFailed) else None
        note_ending(self._admission, error, broken, FinishReason.STOP.value)
        for last in await last_words(self._unheard):
            if last is not None:
                self._count(last.usage.prompt_tokens, last.usage.cached_tokens)

    def _end(self, code: Code) -> None:
        """The platform takes the admission back."""
        self._abort(withdrawn(code))

    def _abort(self, error: GenerationFailed) -> None:
        for generation in self._open.values():
            generation.abort(error)

    async def vectors(self) -> list[bytes]:
        """In the order of the inputs. Raises Denied for the first that fails; the others are then aborted."""
        assert self._route.description is not None
        width = min(len(self._waiting), self._route.description.max_running, MAX_AT_ONCE)
        await for_each(range(width), self._work)
        return self._vectors

    async def _work(self, _worker: int) -> None:
        """One input after the other. One that finds the engine's queue full is left to the others that are in
        it already."""
        while self._waiting:
            index = self._waiting.popleft()
            try:
                self._vectors[index] = await self._vector(index)
            except Denied as denied:
                if denied.code not in QUEUE_FULL or not self._open:
                    raise
                self._waiting.appendleft(index)
                return

    async def _vector(self, index: int) -> bytes:
        """Raises Denied."""
        generation = self._open[index] = self._route.generate(self._message(index))
        self._unheard.append(generation)
        try:
            async for event in generation:
                if type(event) is Accepted:
                    self._unheard.remove(generation)
                    self._count(event.prompt_tokens, event.cached_tokens)
                elif type(event) is Refused:
                    self._unheard.remove(generation)
                    raise Denied(event.reason, event.message or "The engine refused the request.")
                elif type(event) is Finished:
                    return self._vector_of(event)
            raise Denied(Code.INTERNAL_ERROR, "The engine gave no answer.")
        finally:
            del self._open[index]
            generation.abort()

    def _message(self, index: int) -> Generate:
        admission = self._admission
        return Generate(
            request_id=f"{admission.request_id}-{index}",
            prompt_ids=self._order.inputs[index],
            embeds=True,
            sampling=_NOTHING_SAMPLED,
            tenant_id=admission.principal.tenant_id,
            key_id=admission.principal.key_id,
            service_class=admission.service_class,
            weight=admission.weight,
            reservation_key=admission.reservation_key,
        )

    def _count(self, prompt_tokens: int, cached_tokens: int) -> None:
        self._prompt_tokens += prompt_tokens
        self.cached_tokens += cached_tokens
        self._admission.record(prompt_tokens=self._prompt_tokens, cached_tokens=self.cached_tokens)

    def _vector_of(self, finished: Finished) -> bytes:
        if len(finished.vector) != 4 * self._order.embedding.size:
            code = finished.code or Code.INTERNAL_ERROR
            raise Denied(code, f"The engine could not finish the request ({code.value}).")
        self._queue_timer.cancel()
        self._queue_ms = max(self._queue_ms, finished.timeline.queued_ms)
        self._admission.record(queue_ms=self._queue_ms)
        return finished.vector
