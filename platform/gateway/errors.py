"""A denial as an HTTP answer: status, OpenAI's error body, and what tells an SDK whether to try again."""

import math
from typing import NamedTuple, Protocol

import msgspec

from inference_engine.contract.codes import Code
from tenants.errors import Denied

MAX_RETRY_AFTER_S = 60.0
"""Clients give up when they are told to wait for longer than two minutes."""


class Shape(NamedTuple):
    status: int
    type: str
    should_retry: bool
    retry_after_s: float | None = None
    """Where whoever refused, such as an engine, names no time."""


_BAD = Shape(400, "invalid_request_error", False)
_BUSY = Shape(429, "rate_limit_error", True, 1.0)
_ABSENT = Shape(503, "server_error", True, 1.0)
_BROKEN = Shape(500, "server_error", True)

SHAPES: dict[Code, Shape] = {
    Code.INVALID_REQUEST: _BAD,
    Code.INVALID_JSON: _BAD,
    Code.UNSUPPORTED_PARAMETER: _BAD,
    Code.UNSUPPORTED_FEATURE: _BAD,
    Code.TOKEN_ID_OUT_OF_RANGE: _BAD,
    Code.CONTEXT_LENGTH_EXCEEDED: _BAD,
    Code.KV_POOL_EXCEEDED: _BAD,
    Code.TENANT_KV_SHARE_EXCEEDED: _BAD,
    Code.DUPLICATE_REQUEST: Shape(409, "invalid_request_error", False),
    Code.BODY_TOO_LARGE: Shape(413, "invalid_request_error", False),
    Code.HEADERS_TOO_LARGE: Shape(431, "invalid_request_error", False),
    Code.REQUEST_TIMEOUT: Shape(408, "invalid_request_error", True),
    Code.NOT_FOUND: Shape(404, "invalid_request_error", False),
    Code.METHOD_NOT_ALLOWED: Shape(405, "invalid_request_error", False),
    Code.INVALID_API_KEY: Shape(401, "invalid_request_error", False),
    Code.INSUFFICIENT_PERMISSIONS: Shape(403, "permission_error", False),
    Code.MODEL_NOT_FOUND: Shape(404, "invalid_request_error", False),
    Code.RATE_LIMIT_EXCEEDED: _BUSY,
    Code.CONCURRENCY_LIMIT_EXCEEDED: _BUSY,
    Code.INSUFFICIENT_QUOTA: Shape(429, "insufficient_quota", False),
    Code.QUEUE_FULL: _BUSY,
    Code.TENANT_QUEUE_FULL: _BUSY,
    Code.QUEUE_TIMEOUT: Shape(408, "server_error", True),
    Code.NO_READY_REPLICA: _ABSENT,
    Code.STORE_UNAVAILABLE: _ABSENT,
    Code.DRAINING: _ABSENT,
    Code.MAINTENANCE: _ABSENT,
    Code.ENGINE_LOST: _ABSENT,
    Code.SLOW_READER: Shape(408, "invalid_request_error", False),
    Code.DEADLINE_EXCEEDED: Shape(504, "server_error", True),
    Code.CLIENT_GONE: Shape(499, "invalid_request_error", False),
    Code.NON_FINITE_LOGITS: _BROKEN,
    Code.INTERNAL_ERROR: _BROKEN,
    Code.VERSION_MISMATCH: _ABSENT,
    Code.INVALID_FRAME: _BROKEN,
}


def error_object(denied: Denied) -> dict[str, object]:
    shape = SHAPES[denied.code]
    return {
        "error": {
            "message": denied.message,
            "type": shape.type,
            "param": denied.param,
            "code": denied.code.value,
        }
    }


def error_event(denied: Denied) -> bytes:
    """For a stream that has begun: the last thing in it."""
    return b"data: " + msgspec.json.encode(error_object(denied)) + b"\n\n"


class ErrorShape(Protocol):
    """How an interface tells its clients what went wrong."""

    def body(self, denied: Denied, request_id: str) -> object: ...

    def event(self, denied: Denied, request_id: str) -> bytes:
        """For a stream that has begun: the last thing in it."""


class OpenAIErrors:
    def body(self, denied: Denied, request_id: str) -> object:
        return error_object(denied)

    def event(self, denied: Denied, request_id: str) -> bytes:
        return error_event(denied)


OPENAI_ERRORS = OpenAIErrors()


def error_headers(denied: Denied) -> dict[str, str]:
    shape = SHAPES[denied.code]
    headers = dict(denied.headers)
    headers["x-should-retry"] = "true" if shape.should_retry else "false"
    if denied.code is Code.INVALID_API_KEY:
        headers["www-authenticate"] = "Bearer"
    wait_s = shape.retry_after_s if denied.retry_after_s is None else denied.retry_after_s
    if shape.should_retry and wait_s is not None:
        wait_s = min(wait_s, MAX_RETRY_AFTER_S)
        headers["retry-after"] = str(max(1, math.ceil(wait_s)))
        headers["retry-after-ms"] = str(math.ceil(wait_s * 1000))
    return headers


def internal_error() -> Denied:
    """Says nothing of what happened: that is in the log, under the request's id."""
    return Denied(Code.INTERNAL_ERROR, "The server had an error while processing the request.")
