"""A socket as the place where the events of a response go."""

from typing import TYPE_CHECKING

from admission.admission import Admission
from gateway.live.outgoing import rate_limits_message, with_stream
from gateway.runs.event_answer import Event

if TYPE_CHECKING:
    from gateway.live.socket import LiveSocket


class SocketSink:
    takes_failures = True

    def __init__(self, socket: "LiveSocket", stream_id: str | None) -> None:
        self._socket = socket
        self._stream_id = stream_id

    async def admitted(self, admission: Admission) -> None:
        await self._socket.send(rate_limits_message(admission, self._stream_id))

    async def begin(self) -> None:
        """The first event tells."""

    async def send(self, events: list[Event]) -> None:
        for event in events:
            await self._socket.send(with_stream(event.data, self._stream_id))

    async def end(self, events: list[Event], whole: dict[str, object]) -> None:
        await self.send(events)
