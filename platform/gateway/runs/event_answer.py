"""Answers told as events of different types (Responses, Messages), wherever these go."""

from typing import NamedTuple, Protocol

from admission.admission import Admission
from gateway.runs.choice import Choice, Piece
from gateway.runs.chunks import PING
from gateway.runs.run import Run
from gateway.transport.event_stream import EventStream
from gateway.transport.exchange import Exchange


class Event(NamedTuple):
    type: str
    data: bytes
    """A JSON object, which names the type again."""

    def sse(self) -> bytes:
        return b"event: %b\ndata: %b\n\n" % (self.type.encode(), self.data)


class EventAnswer(Protocol):
    """An answer of one choice."""

    def opening(self, choice: Choice) -> list[Event]: ...

    def piece(self, choice: Choice, piece: Piece) -> list[Event]: ...


class EventSink(Protocol):
    """The client's end of an answer."""

    takes_failures: bool
    """An answer that breaks off can be told as events; else the failure is all that is told."""

    async def admitted(self, admission: Admission) -> None: ...

    async def begin(self) -> None: ...

    async def send(self, events: list[Event]) -> None: ...

    async def end(self, events: list[Event], whole: dict[str, object]) -> None:
        """Once the request is settled; `whole` is what a client gets that wanted no events."""


class EventOutput:
    """What the journey fills."""

    def __init__(self, answer: EventAnswer, sink: EventSink) -> None:
        self._answer = answer
        self._sink = sink
        self.run: Run | None = None

    @property
    def has_begun(self) -> bool:
        return self.run is not None

    async def admitted(self, admission: Admission) -> None:
        await self._sink.admitted(admission)

    async def begin(self, run: Run) -> None:
        self.run = run
        await self._sink.begin()
        await self._sink.send(self._answer.opening(run.choices[0]))

    async def emit(self, choice: Choice, piece: Piece) -> None:
        await self._sink.send(self._answer.piece(choice, piece))


class StreamedEvents:
    """Server-sent events, each as it comes."""

    takes_failures = True

    def __init__(self, exchange: Exchange, ping: bytes = PING) -> None:
        self._exchange = exchange
        self._stream = EventStream(exchange, ping)

    async def admitted(self, admission: Admission) -> None:
        self._exchange.add_headers(admission.headers())

    async def begin(self) -> None:
        await self._stream.start()

    async def send(self, events: list[Event]) -> None:
        if events:
            await self._stream.send(b"".join([event.sse() for event in events]))

    async def end(self, events: list[Event], whole: dict[str, object]) -> None:
        await self._stream.end(b"".join([event.sse() for event in events]))


class WholeAnswer:
    """One JSON object at the end."""

    takes_failures = False

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def admitted(self, admission: Admission) -> None:
        self._exchange.add_headers(admission.headers())

    async def begin(self) -> None:
        """Nothing is sent before all is there."""

    async def send(self, events: list[Event]) -> None:
        """They are in the whole."""

    async def end(self, events: list[Event], whole: dict[str, object]) -> None:
        await self._exchange.send_json(200, whole)


def sink_of(exchange: Exchange, is_stream: bool, ping: bytes = PING) -> EventSink:
    return StreamedEvents(exchange, ping) if is_stream else WholeAnswer(exchange)
