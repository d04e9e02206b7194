"""Answers to HTTP/1.0: a client that knows no chunks reads to the end of the connection (RFC 9112, 6.3)."""

import sys
from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from gateway.transport.exchange import Receive, Scope, Send


def without_chunks(app: Any, cycle: RequestResponseCycle) -> Any:
    """uvicorn chunks whatever has no length. Told of one, it writes as it is, and compares at the end."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        is_unframed = False

        async def tell(message: Any) -> None:
            nonlocal is_unframed
            if message["type"] == "http.response.start":
                is_unframed = all(name.lower() != b"content-length" for name, _ in message.get("headers", ()))
                if is_unframed:
                    cycle.chunked_encoding, cycle.expected_content_length = False, sys.maxsize
            elif is_unframed and not message.get("more_body", False):
                cycle.expected_content_length = len(message.get("body", b""))
            await send(message)

        await app(scope, receive, tell)

    return answer
