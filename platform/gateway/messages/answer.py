"""One message from its first event to its last."""

from collections.abc import Sequence
from typing import Any

from gateway.messages.content import ContentBlocks, event
from gateway.orders.order import Order
from gateway.runs.choice import Choice, Piece
from gateway.runs.event_answer import Event
from text.tools.events import ParsedPart

PING = event("ping")


class MessageAnswer:
    def __init__(self, number: str, order: Order) -> None:
        self._id = f"msg_{number}"
        self._model = order.model
        self._content = ContentBlocks()
        self._stop_reason: str | None = None
        self._stop_sequence: str | None = None

    def opening(self, choice: Choice) -> list[Event]:
        return [event("message_start", message=self.whole(choice)), PING]

    def piece(self, choice: Choice, piece: Piece) -> list[Event]:
        parts: Sequence[ParsedPart] = piece.parts or (piece.text,)
        return [told for part in parts if part for told in self._content.add(part)]

    def ending(self, choice: Choice) -> list[Event]:
        self._note_stop(choice)
        delta = {"stop_reason": self._stop_reason, "stop_sequence": self._stop_sequence}
        return [
            *self._content.close(),
            event("message_delta", delta=delta, usage=_usage_of(choice)),
            event("message_stop"),
        ]

    def _note_stop(self, choice: Choice) -> None:
        self._stop_sequence = choice.matched_stop
        if choice.finish_reason == "tool_calls":
            self._stop_reason = "tool_use"
        elif choice.finish_reason == "length":
            self._stop_reason = "max_tokens"
        else:
            self._stop_reason = "end_turn" if self._stop_sequence is None else "stop_sequence"

    def whole(self, choice: Choice) -> dict[str, Any]:
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": self._content.blocks,
            "stop_reason": self._stop_reason,
            "stop_sequence": self._stop_sequence,
            "usage": _usage_of(choice),
        }


def _usage_of(choice: Choice) -> dict[str, int]:
    """Cumulative; tokens that were found in the cache are counted apart."""
    return {
        "input_tokens": choice.prompt_tokens - choice.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": choice.cached_tokens,
        "output_tokens": choice.num_tokens,
    }
