"""Static batching, as servers did it before: a batch is admitted together, padded, and finishes together.

The same runner computes it. Prompts are packed, not padded, which is kinder than what such servers did; but a
request that has all its tokens goes on being computed until the last one of its batch has its own.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.chat_work import ChatRequest
from benchmarks.scheme.continuous import Arrival
from benchmarks.scheme.engine import Engine, greedy
from benchmarks.scheme.record import Run, Step, Timeline
from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.scheduling.request import Request
from inference_engine.scheduling.step_plan import ScheduledChunk, StepPlan


@dataclass(slots=True)
class Row:
    """One request of a batch, with the KV slots of a whole context."""

    request: Request
    wanted: int
    timeline: Timeline
    ids: list[int]
    blocks: list[int]
    num_computed: int = 0

    def chunk(self, num_tokens: int) -> ScheduledChunk:
        ids = self.ids[self.num_computed : self.num_computed + num_tokens]
        samples = self.num_computed + len(ids) == len(self.ids)
        return ScheduledChunk(self.request, self.num_computed, ids, self.blocks, samples)

    @property
    def is_useful(self) -> bool:
        return len(self.timeline.tokens_at) < self.wanted


class StaticBatches:
    def __init__(
        self,
        engine: Engine,
        on_token: Callable[[], None],
        *,
        size: int,
        reserved_each: int,
        max_step_tokens: int,
    ) -> None:
        self._engine = engine
        self._on_token = on_token
        self._size = size
        self._reserved_each = reserved_each
        self._max_step_tokens = max_step_tokens
        self._run = Run()
        self._started_at = 0.0

    def run(self, arrivals: Sequence[Arrival]) -> Run:
        self._started_at = time.perf_counter()
        waiting = list(arrivals)
        while waiting:
            batch, waiting = waiting[: self._size], waiting[self._size :]
            time.sleep(max(0.0, batch[-1].at - self._now()))  # a batch starts full, or with all the rest
            self._run_batch([self._row(place, arrival) for place, arrival in enumerate(batch)])
        self._run.seconds = self._now()
        return self._run

    def _now(self) -> float:
        return time.perf_counter() - self._started_at

    def _row(self, place: int, arrival: Arrival) -> Row:
        timeline = Timeline(arrival.at)
        self._run.timelines.append(timeline)
        each = self._reserved_each // BLOCK_SIZE
        blocks = list(range(place * each, (place + 1) * each))
        request = _request(place, arrival.request, self._reserved_each)
        return Row(request, arrival.request.max_tokens, timeline, list(arrival.request.prompt_ids), blocks)

    def _run_batch(self, rows: list[Row]) -> None:
        while any(row.num_computed < len(row.ids) - 1 for row in rows):
            self._step(rows, self._prefill(rows))
        while any(row.is_useful for row in rows):
            self._step(rows, [(row, 1) for row in rows])

    def _prefill(self, rows: list[Row]) -> list[tuple[Row, int]]:
        """Prompts one after the other, as many as fit into a step; their last tokens wait for one another."""
        left, chosen = self._max_step_tokens, []
        for row in rows:
            share = min(left, len(row.ids) - 1 - row.num_computed)
            left -= share
            if share:
                chosen.append((row, share))
        return chosen

    def _step(self, rows: list[Row], chosen: list[tuple[Row, int]]) -> None:
        plan = StepPlan(0, [row.chunk(num_tokens) for row, num_tokens in chosen])
        is_useful = sum(row.is_useful for row, _ in chosen)
        result = self._engine.runner.run(plan)
        now = self._now()
        for (row, num_tokens), token in zip(chosen, result.sampled, strict=True):
            row.num_computed += num_tokens
            if token is not None:
                row.ids.append(token.token_id)
                self._take(row, now)
        used = sum(len(row.ids) for row in rows)
        reserved = self._size * self._reserved_each
        self._run.steps.append(Step(plan.num_tokens, self._size, is_useful, reserved, used))

    def _take(self, row: Row, now: float) -> None:
        if row.is_useful:
            row.timeline.tokens_at.append(now)
            self._on_token()


def _request(place: int, request: ChatRequest, context: int) -> Request:
    return Request(greedy(str(place), request), arrival=place, max_tokens=context, end_ids=frozenset())
