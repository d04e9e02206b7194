"""Which endpoint answers what."""

import re
from collections.abc import Awaitable, Callable

from gateway.chat.endpoint import chat_completions
from gateway.completions.endpoint import completions
from gateway.embeddings.endpoint import embeddings
from gateway.health_endpoint import health, ready
from gateway.live.ticket_endpoint import create_ticket
from gateway.messages.endpoint import count_tokens, create_message
from gateway.metrics_endpoint import metrics
from gateway.models_endpoint import list_models, show_model
from gateway.openapi.endpoint import openapi
from gateway.responses.endpoint import create_response
from gateway.responses.stored_endpoints import (
    cancel_response,
    delete_response,
    list_input_items,
    show_response,
)
from gateway.services import Services
from gateway.tokens.endpoint import detokenize, tokenize
from gateway.transport.exchange import Exchange
from inference_engine.contract.codes import Code
from tenants.errors import Denied

Endpoint = Callable[[Exchange, Services], Awaitable[None]]

ROUTES: dict[str, dict[str, Endpoint]] = {
    "/v1/chat/completions": {"POST": chat_completions},
    "/v1/completions": {"POST": completions},
    "/v1/models": {"GET": list_models},
    "/v1/openapi.json": {"GET": openapi},
    "/v1/responses": {"POST": create_response},
    "/v1/embeddings": {"POST": embeddings},
    "/tokenize": {"POST": tokenize},
    "/detokenize": {"POST": detokenize},
    "/v1/messages": {"POST": create_message},
    "/v1/messages/count_tokens": {"POST": count_tokens},
    "/v1/realtime/tickets": {"POST": create_ticket},
    "/health": {"GET": health, "HEAD": health},
    "/ready": {"GET": ready, "HEAD": ready},
    "/metrics": {"GET": metrics},
}
PATTERNS: list[tuple[re.Pattern[str], dict[str, Endpoint]]] = [
    (re.compile(r"/v1/models/.+"), {"GET": show_model}),
    (re.compile(r"/v1/responses/[^/]+"), {"GET": show_response, "DELETE": delete_response}),
    (re.compile(r"/v1/responses/[^/]+/cancel"), {"POST": cancel_response}),
    (re.compile(r"/v1/responses/[^/]+/input_items"), {"GET": list_input_items}),
]
"""Paths that hold an id."""


def find_endpoint(method: str, path: str) -> Endpoint:
    """Raises Denied: NOT_FOUND, METHOD_NOT_ALLOWED."""
    methods = ROUTES.get(path) or _of_pattern(path)
    if methods is None:
        raise Denied(Code.NOT_FOUND, f"Unknown request URL: {method} {path}.")
    endpoint = methods.get(method)
    if endpoint is None:
        allowed = ", ".join(methods)
        message = f"{path} does not take {method}; it takes {allowed}."
        raise Denied(Code.METHOD_NOT_ALLOWED, message, headers={"allow": allowed})
    return endpoint


def _of_pattern(path: str) -> dict[str, Endpoint] | None:
    return next((methods for pattern, methods in PATTERNS if pattern.fullmatch(path)), None)
