"""One response from its first event to its last: the object, its status and its events."""

import time
from collections.abc import Sequence
from typing import Any

from gateway.errors import SHAPES
from gateway.responses.event_numbers import EventNumbers
from gateway.responses.output_items import Logprobs, OutputItems
from gateway.responses.request import ResponseRequest
from gateway.runs.choice import Choice, Piece
from gateway.runs.event_answer import Event
from gateway.runs.token_names import chat_logprobs
from inference_engine.contract.codes import Code
from tenants.errors import Denied
from text.model_text import ModelText
from text.tools.events import ParsedPart

_LAST_EVENTS = {
    "completed": "response.completed",
    "failed": "response.failed",
    "incomplete": "response.incomplete",
    "cancelled": "response.incomplete",
}


class ResponseAnswer:
    def __init__(self, request: ResponseRequest, text: ModelText) -> None:
        self.request = request
        self.status = "in_progress"
        self.is_kept = request.is_stored
        self.failed_with: Code | None = None
        self._text = text
        self._numbers = EventNumbers()
        self._output = OutputItems(request.number, self._numbers)
        self._waiting_logprobs: Logprobs = []
        self._created_at = int(time.time())
        self._completed_at: int | None = None
        self._error: dict[str, Any] | None = None
        self._incomplete: dict[str, Any] | None = None
        self._usage: dict[str, Any] | None = None

    @property
    def output(self) -> list[dict[str, Any]]:
        return self._output.items

    # while it is made

    def opening(self, choice: Choice) -> list[Event]:
        kinds = ("response.created", "response.in_progress")
        return [self._numbers.event(kind, response=self.whole()) for kind in kinds]

    def piece(self, choice: Choice, piece: Piece) -> list[Event]:
        self._note_logprobs(piece)
        parts: Sequence[ParsedPart] = piece.parts or (piece.text,)
        return [event for part in parts if part for event in self._add(part)]

    def _add(self, part: ParsedPart) -> list[Event]:
        logprobs: Logprobs = []
        if isinstance(part, str):
            logprobs, self._waiting_logprobs = self._waiting_logprobs, []
        return self._output.add(part, logprobs)

    def _note_logprobs(self, piece: Piece) -> None:
        """They go out with the next text."""
        num_top = self.request.order.logprobs
        if num_top is not None and piece.logprobs:
            shaped = chat_logprobs(self._text, piece.token_ids, piece.logprobs, num_top)
            self._waiting_logprobs += shaped["content"]

    # its end

    def finish(self, choice: Choice) -> list[Event]:
        is_whole = choice.finish_reason != "length"
        if not is_whole:
            self._incomplete = {"reason": "max_output_tokens"}
        return self._end("completed" if is_whole else "incomplete", choice)

    def cancel(self, choice: Choice) -> list[Event]:
        return self._end("cancelled", choice)

    def fail(self, denied: Denied, choice: Choice) -> list[Event]:
        self.failed_with = denied.code
        self._error = {"code": denied.code.value, "message": denied.message}
        self._error |= {"type": SHAPES[denied.code].type, "param": denied.param}
        return self._end("failed", choice)

    def _end(self, status: str, choice: Choice) -> list[Event]:
        """Everything but the last event, which waits for the response to be kept."""
        events: list[Event] = []
        if self._waiting_logprobs and not self._output.is_in_call:
            events = self._output.add("", self._waiting_logprobs)
        events += self._output.close("completed" if status == "completed" else "incomplete")
        self.status = status
        self._completed_at = int(time.time()) if status == "completed" else None
        self._usage = _usage_of(choice)
        return events

    def last_event(self) -> Event:
        return self._numbers.event(_LAST_EVENTS[self.status], response=self.whole())

    def whole(self) -> dict[str, Any]:
        return {
            "id": self.request.id,
            "object": "response",
            "created_at": self._created_at,
            "status": self.status,
            "completed_at": self._completed_at,
            "error": self._error,
            "incomplete_details": self._incomplete,
            "output": self.output,
            "usage": self._usage,
            "store": self.is_kept,
            **self.request.shown,
        }


def _usage_of(choice: Choice) -> dict[str, Any]:
    return {
        "input_tokens": choice.prompt_tokens,
        "input_tokens_details": {"cached_tokens": choice.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": choice.num_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": choice.prompt_tokens + choice.num_tokens,
    }
