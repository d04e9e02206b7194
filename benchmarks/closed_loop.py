"""A fixed number of requests at once through the engine's own loop, in process: one ends, the next begins.

All of the engine but its process and streams: scheduler, runner, desk, outboxes. Nothing is encoded or sent.
"""

import queue
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.chat_work import ChatRequest
from inference_engine.contract.events import Delta, Finished
from inference_engine.contract.requests import Generate
from inference_engine.contract.sampling import SamplingParams
from inference_engine.scheduling.scheduler import Scheduler
from inference_engine.serving.inbox import Received, SessionOpened
from inference_engine.serving.loop import EngineLoop, Listeners
from inference_engine.serving.outbox import Outbox
from inference_engine.serving.runner import Runner

SESSION = 1
STOP_S = 10.0
PATIENCE_S = 120.0
"""Silence that ends a run."""


@dataclass(frozen=True, slots=True)
class Throughput:
    output_tokens: int
    seconds: float


class ClosedLoop:
    """Greedy requests, `concurrency` at once. A loop of its own; close it."""

    def __init__(self, scheduler: Scheduler, runner: Runner, concurrency: int) -> None:
        self._concurrency = concurrency
        self._outbox = Outbox(SESSION, max_frames=1 << 20, max_tokens=1 << 30)
        self._woken: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        listeners = Listeners(
            wake=lambda _: self._woken.put(None), orphans=lambda _: None, died=self._woken.put
        )
        self._loop = EngineLoop(scheduler, runner, listeners)
        self._loop.inbox.put(SessionOpened(self._outbox))
        self._loop.start()

    def close(self) -> None:
        self._loop.stop(STOP_S)

    def run(self, work: Sequence[ChatRequest], on_token: Callable[[], None] = lambda: None) -> Throughput:
        """Raises RuntimeError when the loop dies or a request comes out at another length."""
        started = time.perf_counter()
        waiting = iter(enumerate(work))
        for _ in range(self._concurrency):
            self._send_next(waiting)
        num_ended = num_tokens = 0
        while num_ended < len(work):
            for message in self._messages():
                if isinstance(message, Delta):
                    num_tokens += len(message.token_ids)
                    on_token()
                elif isinstance(message, Finished):
                    num_ended += 1
                    self._send_next(waiting)
        if num_tokens != sum(request.max_tokens for request in work):
            raise RuntimeError(f"{num_tokens} tokens came out, not as many as were asked for")
        return Throughput(num_tokens, time.perf_counter() - started)

    def _send_next(self, waiting: "enumerate[ChatRequest]") -> None:
        for index, request in waiting:
            generate = greedy(f"request-{index}", request)
            return self._loop.inbox.put(Received(SESSION, generate, time.monotonic()))

    def _messages(self) -> list[object]:
        error = self._woken.get(timeout=PATIENCE_S)
        if error is not None:
            raise RuntimeError("the loop died") from error
        batch = self._outbox.take()
        return [] if batch is None else list(batch.messages)


def greedy(request_id: str, request: ChatRequest) -> Generate:
    sampling = SamplingParams(seed=0, temperature=0.0, max_tokens=request.max_tokens, ignore_eos=True)
    return Generate(
        request_id=request_id, prompt_ids=request.prompt_ids, sampling=sampling, tenant_id="benchmark"
    )
