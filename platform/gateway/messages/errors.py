"""What goes wrong, as Anthropic's clients expect to hear it."""

from gateway.errors import SHAPES
from gateway.runs.chunks import encode
from gateway.runs.event_answer import Event
from gateway.transport.exchange import Exchange
from tenants.errors import Denied

PATH = "/v1/messages"

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "overloaded_error",
    504: "timeout_error",
}


class AnthropicErrors:
    def body(self, denied: Denied, request_id: str) -> object:
        kind = _TYPES.get(SHAPES[denied.code].status, "invalid_request_error")
        message = denied.message if denied.param is None else f"{denied.param}: {denied.message}"
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id}

    def event(self, denied: Denied, request_id: str) -> bytes:
        return Event("error", encode(self.body(denied, request_id))).sse()


ANTHROPIC_ERRORS = AnthropicErrors()


def speak_anthropic(exchange: Exchange) -> None:
    """Whatever is answered under this path, 404 and 405 too."""
    exchange.errors = ANTHROPIC_ERRORS
    exchange.add_headers({"request-id": exchange.request_id})


def is_of_messages(path: str) -> bool:
    return path == PATH or path.startswith(f"{PATH}/")
