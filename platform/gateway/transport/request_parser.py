"""httptools' parser, but an upgrade that nobody here speaks is none.

RFC 9110 lets a server ignore it; Java's own HTTP client asks for h2c with its first request. httptools takes
whatever follows such a head for another protocol: the body would be lost, or be taken for the next request.
"""

from collections.abc import Iterable
from typing import Any, Protocol

from httptools import HttpParserUpgrade, HttpRequestParser


class Listener(Protocol):
    """What a connection must tell of the request whose head was read last."""

    url: bytes
    headers: list[tuple[bytes, bytes]]

    def ignores_upgrade(self) -> bool: ...


class RequestParser(HttpRequestParser):
    """Its listener hears the head of a request with such an upgrade a second time, without it."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener)
        self._listener = listener

    def feed_data(self, data: Any) -> None:
        """Raises HttpParserError, and HttpParserUpgrade for one that is spoken."""
        rest = memoryview(data)
        while rest:
            try:
                super().feed_data(rest)
                return
            except HttpParserUpgrade as upgrade:
                if not self._listener.ignores_upgrade():
                    raise
                rest = rest[upgrade.args[0] :]
            super().feed_data(self._plain_head())

    def _plain_head(self) -> bytes:
        request = b"%b %b HTTP/%b" % (self.get_method(), self._listener.url, self.get_http_version().encode())
        lines = [request, *(b"%b: %b" % pair for pair in _without_upgrade(self._listener.headers)), b"", b""]
        return b"\r\n".join(lines)


def _without_upgrade(headers: Iterable[tuple[bytes, bytes]]) -> Iterable[tuple[bytes, bytes]]:
    for name, value in headers:
        if name == b"connection":
            kept = [token for token in value.split(b",") if token.strip().lower() != b"upgrade"]
            yield name, b",".join(kept)
        elif name != b"upgrade":
            yield name, value
