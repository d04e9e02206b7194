"""A socket as the place where the events of a response go."""

from collections.abc import Awaitable, Callable

from admission.admission import Admission
from gateway.live.outgoing import rate_limits_message, with_stream
from gateway.runs.event_answer import Event


class SocketSink:
    takes_failures = True

    def __init__(self, send: Callable[[bytes], Awaitable[None]], stream_id: str | None) -> None:
        self._send = send
        self._stream_id = stream_id

    async def admitted(self, admission: Admission) -> None:
        await self._send(rate_limits_message(admission, self._stream_id))

    async def begin(self) -> None:
        """The first event tells."""

    async def send(self, events: list[Event]) -> None:
        for event in events:
            await self._send(with_stream(event.data, self._stream_id))

    async def end(self, events: list[Event], whole: dict[str, object]) -> None:
        await self.send(events)
