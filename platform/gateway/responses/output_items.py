"""The items of an answer as they grow, and the events that tell of it."""

from typing import Any

from gateway.responses.event_numbers import EventNumbers
from gateway.responses.ids import item_id
from gateway.runs.event_answer import Event
from text.tools.events import CallArguments, CallBegin, CallEnd, CallEvent, ParsedPart

Logprobs = list[dict[str, Any]]


class OutputItems:
    """At most one item is open: a message with one text part, or a function call."""

    def __init__(self, number: str, numbers: EventNumbers) -> None:
        self.items: list[dict[str, Any]] = []
        self._number = number
        self._event = numbers.event
        self._texts: list[str] = []
        self._logprobs: Logprobs = []
        """Of the open message."""
        self._open: dict[str, Any] | None = None

    @property
    def is_in_call(self) -> bool:
        return bool(self.items) and self.items[-1]["type"] == "function_call"

    def add(self, part: ParsedPart, logprobs: Logprobs) -> list[Event]:
        """`logprobs` are those of the tokens behind a text."""
        return self._add_text(part, logprobs) if isinstance(part, str) else self._add_call(part)

    def close(self, status: str) -> list[Event]:
        """The answer has ended. An answer with nothing in it has one empty message."""
        events = [] if self.items else self._open_message()
        return events + self._close(status)

    # messages

    def _add_text(self, text: str, logprobs: Logprobs) -> list[Event]:
        events: list[Event] = []
        if self._open is None:
            events = self._open_message()
        self._texts.append(text)
        self._logprobs += logprobs
        place = self._place_of_part()
        events.append(self._event("response.output_text.delta", **place, delta=text, logprobs=logprobs))
        return events

    def _open_message(self) -> list[Event]:
        self._texts, self._logprobs = [], []
        message = self._new("message", role="assistant", content=[])
        added = self._event(
            "response.output_item.added", output_index=len(self.items) - 1, item=dict(message)
        )
        part = self._event("response.content_part.added", **self._place_of_part(), part=_text_part("", []))
        return [added, part]

    def _close_message(self, message: dict[str, Any]) -> list[Event]:
        text = "".join(self._texts)
        part = _text_part(text, self._logprobs)
        message["content"] = [part]
        place = self._place_of_part()
        return [
            self._event("response.output_text.done", **place, text=text, logprobs=self._logprobs),
            self._event("response.content_part.done", **place, part=part),
        ]

    # function calls

    def _add_call(self, part: CallEvent) -> list[Event]:
        match part:
            case CallBegin():
                events = self._close("completed")
                self._texts = []
                call = self._new("function_call", call_id=part.id, name=part.name, arguments="")
                place = {"output_index": len(self.items) - 1}
                return [*events, self._event("response.output_item.added", **place, item=dict(call))]
            case CallArguments():
                self._texts.append(part.text)
                kind = "response.function_call_arguments.delta"
                return [self._event(kind, **self._place(), delta=part.text)]
            case CallEnd():
                return self._close("completed" if part.is_complete else "incomplete")

    def _close_call(self, call: dict[str, Any]) -> list[Event]:
        call["arguments"] = "".join(self._texts)
        fields = {"name": call["name"], "arguments": call["arguments"]}
        return [self._event("response.function_call_arguments.done", **self._place(), **fields)]

    # both

    def _new(self, kind: str, **fields: Any) -> dict[str, Any]:
        shown_id = item_id(kind, self._number, len(self.items), is_input=False)
        self._open = {"id": shown_id, "type": kind, "status": "in_progress", **fields}
        self.items.append(self._open)
        return self._open

    def _close(self, status: str) -> list[Event]:
        item, place = self._open, {"output_index": len(self.items) - 1}
        if item is None:
            return []
        item["status"] = status
        events = self._close_message(item) if item["type"] == "message" else self._close_call(item)
        self._open = None
        return [*events, self._event("response.output_item.done", **place, item=item)]

    def _place(self) -> dict[str, Any]:
        return {"item_id": self.items[-1]["id"], "output_index": len(self.items) - 1}

    def _place_of_part(self) -> dict[str, Any]:
        return {**self._place(), "content_index": 0}


def _text_part(text: str, logprobs: Logprobs) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}
