"""What the server says on a socket beside the events of responses."""

import secrets
from typing import Any

from admission.admission import Admission
from gateway.errors import SHAPES, error_headers, error_object
from gateway.runs.chunks import encode
from quotas.outcomes import RateState
from tenants.errors import Denied


def with_stream(data: bytes, stream_id: str | None) -> bytes:
    """The same JSON object, naming its stream."""
    return data if stream_id is None else b'%b,"stream_id":%b}' % (data[:-1], encode(stream_id))


def error_message(denied: Denied, stream_id: str | None = None) -> bytes:
    error: dict[str, Any] = dict(error_object(denied)["error"])  # type: ignore[call-overload]
    error["headers"] = error_headers(denied)
    status = SHAPES[denied.code].status
    return with_stream(encode({"type": "error", "status": status, "error": error}), stream_id)


def rate_limits_message(admission: Admission, stream_id: str | None) -> bytes:
    states = (("requests", admission.rates.requests), ("tokens", admission.rates.tokens))
    limits = [_shaped(name, state) for name, state in states if state is not None]
    event = {
        "type": "rate_limits.updated",
        "event_id": f"event_{secrets.token_hex(12)}",
        "rate_limits": limits,
    }
    return with_stream(encode(event), stream_id)


def _shaped(name: str, state: RateState) -> dict[str, object]:
    return {
        "name": name,
        "limit": state.limit,
        "remaining": state.remaining,
        "reset_seconds": round(state.reset_s, 3),
    }
