"""Events of one response, numbered."""

from gateway.runs.chunks import encode
from gateway.runs.event_answer import Event


class EventNumbers:
    def __init__(self) -> None:
        self._next = 0

    def event(self, kind: str, **fields: object) -> Event:
        number, self._next = self._next, self._next + 1
        return Event(kind, encode({"type": kind, "sequence_number": number, **fields}))
