"""One choice being generated on one engine: its events in order, without a gap, through a bounded queue."""

import asyncio
from collections import deque
from collections.abc import Callable

from fleet.failures import GenerationFailed, SlowReader
from inference_engine.contract.events import Accepted, Delta, Finished, Refused

Event = Accepted | Delta | Finished | Refused

MAX_PENDING_TOKENS = 512
"""Output tokens that may wait for the reader; one more and the request is aborted."""


class Generation:
    """Async iterator over Accepted, Delta... and Finished, or over one Refused.

    Deltas that wait for a slow reader are joined, so a reader that falls behind gets fewer, longer ones.
    After `abort()` the iterator ends; `last_word()` still tells what the engine had produced by then.
    """

    __slots__ = (
        "_events",
        "_is_aborted",
        "_is_lost",
        "_last",
        "_pending_tokens",
        "_readers",
        "_send_abort",
        "attempt",
        "error",
        "request_id",
    )

    def __init__(self, request_id: str, attempt: int, send_abort: Callable[[], None]) -> None:
        self.request_id = request_id
        self.attempt = attempt
        self._send_abort = send_abort
        self._events: deque[Event] = deque()
        self._pending_tokens = 0
        self._readers: list[asyncio.Future[None]] = []
        self.error: GenerationFailed | None = None
        self._last: Finished | Refused | None = None
        self._is_aborted = False
        self._is_lost = False

    # the reader's side

    def __aiter__(self) -> "Generation":
        return self

    async def __anext__(self) -> Event:
        """Raises GenerationFailed where the events break off."""
        while not self._events:
            if self.error is not None:
                raise self.error
            if self._is_aborted or self._last is not None:
                raise StopAsyncIteration
            await self._news()
        event = self._events.popleft()
        if type(event) is Delta:
            self._pending_tokens -= len(event.token_ids)
        return event

    def abort(self, error: GenerationFailed | None = None) -> None:
        """Stop the engine's work on it at once; the reader gets `error`, or the plain end of the events.

        Idempotent; once the engine has ended it, nothing is left to do.
        """
        if self._is_aborted or self.is_over:
            return
        self._is_aborted = True
        self.error = error
        self._events.clear()
        self._send_abort()
        self._wake()

    async def last_word(self) -> Finished | Refused | None:
        """Wait for the engine's last message; None if the engine was lost before it came."""
        while not self.is_over:
            await self._news()
        return self._last

    @property
    def is_over(self) -> bool:
        """Nothing more will come from the engine."""
        return self._last is not None or self._is_lost

    # the session's side

    def put(self, event: Event) -> None:
        if type(event) is Finished or type(event) is Refused:
            self._last = event
        if not self._is_aborted:
            self._queue(event)
        self._wake()

    def lose(self, error: GenerationFailed) -> None:
        """The engine is gone."""
        if not self.is_over:
            self._is_lost = True
            if not self._is_aborted:
                self.error = error
            self._wake()

    def _queue(self, event: Event) -> None:
        if type(event) is not Delta:
            self._events.append(event)
            return
        self._pending_tokens += len(event.token_ids)
        if self._pending_tokens > MAX_PENDING_TOKENS:
            self.abort(SlowReader(MAX_PENDING_TOKENS))
        elif self._events and type(waiting := self._events[-1]) is Delta:
            self._events[-1] = _joined(waiting, event)
        else:
            self._events.append(event)

    async def _news(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._readers.append(future)
        await future

    def _wake(self) -> None:
        if self._readers:
            readers, self._readers = self._readers, []
            for future in readers:
                if not future.done():
                    future.set_result(None)


def _joined(first: Delta, second: Delta) -> Delta:
    logprobs = None if second.logprobs is None else [*(first.logprobs or []), *second.logprobs]
    return Delta(
        request_id=second.request_id,
        attempt=second.attempt,
        token_ids=first.token_ids + second.token_ids,
        logprobs=logprobs,
        prompt_logprobs=second.prompt_logprobs if first.prompt_logprobs is None else first.prompt_logprobs,
    )
