"""A refusal ahead of the application, in bytes: the connection ends with it."""

import secrets

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from gateway.errors import SHAPES, error_headers, error_object
from tenants.errors import Denied


def plain_answer(denied: Denied) -> bytes:
    body: bytes = msgspec.json.encode(error_object(denied))
    named = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "connection": "close",
        "x-request-id": f"req_{secrets.token_hex(12)}",
        **error_headers(denied),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return b"".join([STATUS_LINE[SHAPES[denied.code].status], lines.encode(), b"\r\n", body])
