"""Where a change comes from: the request that asks for it, its id and its address, for records and logs."""

import uuid
from collections.abc import Callable
from contextvars import ContextVar
from typing import NamedTuple

import structlog
from django.http import HttpRequest, HttpResponse

CLIENT_ID_HEADER = "X-Client-Request-Id"
MAX_CLIENT_ID = 512
COMMAND_LINE = "command line"
ANONYMOUS = "anonymous"


class Origin(NamedTuple):
    request_id: str = ""
    address: str = ""
    request: HttpRequest | None = None


NOWHERE = Origin()
_origin: ContextVar[Origin] = ContextVar("audit_origin", default=NOWHERE)


def current_origin() -> Origin:
    """Empty outside a request."""
    return _origin.get()


def user_actor(name: str) -> str:
    return f"user:{name}"


def current_actor() -> str:
    """For what no service is told the actor of: the operator whose request this is, or the command line."""
    request = _origin.get().request
    if request is None:
        return COMMAND_LINE
    user = getattr(request, "user", None)
    return user_actor(user.get_username()) if user is not None and user.is_authenticated else ANONYMOUS


class OriginMiddleware:
    """Draws each request's id and answers with it. A client's own id is echoed, never used as one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        origin = Origin(f"req_{uuid.uuid4().hex}", request.META.get("REMOTE_ADDR") or "", request)
        token = _origin.set(origin)
        try:
            with structlog.contextvars.bound_contextvars(request_id=origin.request_id):
                response = self._get_response(request)
        finally:
            _origin.reset(token)
        response.headers["X-Request-Id"] = origin.request_id
        client_id = request.headers.get(CLIENT_ID_HEADER, "")
        if client_id and len(client_id) <= MAX_CLIENT_ID and client_id.isascii() and client_id.isprintable():
            response.headers[CLIENT_ID_HEADER] = client_id
        return response
