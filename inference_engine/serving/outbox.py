"""Step batches that wait for one session's writer: put by the loop's thread, taken by the asyncio thread.

Each side only ever raises its own counters, so no lock is needed (single producer, single consumer).
"""

from collections import deque
from dataclasses import dataclass

from inference_engine.contract.events import EngineMessage


@dataclass(frozen=True, slots=True)
class Batch:
    """What one step has for one session; it becomes one EngineFrame."""

    messages: list[EngineMessage]
    num_tokens: int
    step: int
    has_work: bool


class Outbox:
    def __init__(self, session_id: int, *, max_frames: int, max_tokens: int) -> None:
        self.session_id = session_id
        self._max_frames = max_frames
        self._max_tokens = max_tokens
        self._batches: deque[Batch] = deque()
        self._tokens_put = 0
        self._tokens_taken = 0

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def num_tokens(self) -> int:
        return self._tokens_put - self._tokens_taken

    @property
    def is_over(self) -> bool:
        """The reader is too slow: its requests are aborted, and it isn't listened to until it catches up."""
        return len(self._batches) > self._max_frames or self.num_tokens > self._max_tokens

    def put(self, batch: Batch) -> None:
        """Never refuses, so that final messages get through; the caller looks at `is_over` and acts."""
        self._batches.append(batch)
        self._tokens_put += batch.num_tokens

    def take(self) -> Batch | None:
        if not self._batches:
            return None
        batch = self._batches.popleft()
        self._tokens_taken += batch.num_tokens
        return batch
