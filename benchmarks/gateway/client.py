"""A client that costs next to nothing: one asyncio protocol a stream, pieces counted, nothing parsed.

It shares the machine with what it measures, so it must not take the time that it is there to measure.
"""

import asyncio
import json
import re
import time
from array import array
from dataclasses import dataclass, field
from itertools import pairwise

PIECE = b'"delta":{"content":'
END = b"data: [DONE]\n\n"
_TOKENS = re.compile(rb'"completion_tokens":(\d+)')
_TAIL = 512
"""Bytes kept of a stream: its last events."""


@dataclass
class Work:
    """What one stream asks for."""

    model: str
    max_tokens: int
    prompt: str = "Say something."


@dataclass
class Stream:
    """What became of it. Seconds on the monotonic clock: uvloop's own counts whole milliseconds."""

    sent_at: float = 0.0
    first_at: float | None = None
    """Its first piece of content: the role's chunk does not count."""
    num_pieces: int = 0
    num_tokens: int = 0
    """As the usage at the end says."""
    status: int = 0
    arrivals: "array[float]" = field(default_factory=lambda: array("d"))
    """One entry for each read from the socket that brought content."""

    @property
    def is_whole(self) -> bool:
        return self.status == 200 and self.num_tokens > 0

    def longest_gap_s(self, since: float, until: float) -> float:
        at = [time for time in self.arrivals if since <= time <= until]
        return max((later - sooner for sooner, later in pairwise(at)), default=0.0)


class Client(asyncio.Protocol):
    def __init__(self, request: bytes) -> None:
        self.stream = Stream()
        self._request = request
        loop = asyncio.get_running_loop()
        self.done: asyncio.Future[Stream] = loop.create_future()
        self.flows: asyncio.Future[None] = loop.create_future()
        """Content has come, or the stream has ended."""
        self._tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        self.stream.sent_at = time.monotonic()
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        stream = self.stream
        if not stream.status:
            stream.status = int(data[9:12])
        count = data.count(PIECE)
        if count:
            stream.num_pieces += count
            stream.arrivals.append(time.monotonic())
            if stream.first_at is None:
                stream.first_at = stream.arrivals[0]
                self.flows.set_result(None)
        self._tail = data[-_TAIL:] if len(data) >= _TAIL else (self._tail + data)[-_TAIL:]
        if END in self._tail or stream.status != 200:
            if found := _TOKENS.search(self._tail):
                stream.num_tokens = int(found[1])
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.flows.done():
            self.flows.set_result(None)
        if not self.done.done():
            self.done.set_result(self.stream)


class Load:
    """Streams against one server."""

    def __init__(self, port: int, key: str) -> None:
        self._port, self._key = port, key
        self.clients: list[Client] = []

    async def open(self, work: Work) -> Client:
        request = self._request(work)
        _, client = await asyncio.get_running_loop().create_connection(
            lambda: Client(request), "127.0.0.1", self._port
        )
        self.clients.append(client)
        return client

    def num_pieces(self) -> int:
        return sum(client.stream.num_pieces for client in self.clients)

    def _request(self, work: Work) -> bytes:
        body = json.dumps(
            {
                "model": work.model,
                "messages": [{"role": "user", "content": work.prompt}],
                "max_completion_tokens": work.max_tokens,
                "ignore_eos": True,
                "stream": True,
                "stream_options": {"include_usage": True},
            }
        ).encode()
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {self._key}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body
