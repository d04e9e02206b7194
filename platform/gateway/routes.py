"""Which endpoint answers what."""

from collections.abc import Awaitable, Callable

from gateway.chat.endpoint import chat_completions
from gateway.completions.endpoint import completions
from gateway.health_endpoint import health, ready
from gateway.metrics_endpoint import metrics
from gateway.models_endpoint import MODELS_PATH, list_models, show_model
from gateway.services import Services
from gateway.transport.exchange import Exchange
from inference_engine.contract.codes import Code
from tenants.errors import Denied

Endpoint = Callable[[Exchange, Services], Awaitable[None]]

ROUTES: dict[str, dict[str, Endpoint]] = {
    "/v1/chat/completions": {"POST": chat_completions},
    "/v1/completions": {"POST": completions},
    "/v1/models": {"GET": list_models},
    "/health": {"GET": health, "HEAD": health},
    "/ready": {"GET": ready, "HEAD": ready},
    "/metrics": {"GET": metrics},
}
_ONE_MODEL: dict[str, Endpoint] = {"GET": show_model}


def find_endpoint(method: str, path: str) -> Endpoint:
    """Raises Denied: NOT_FOUND, METHOD_NOT_ALLOWED."""
    methods = ROUTES.get(path)
    if methods is None and path.startswith(MODELS_PATH) and len(path) > len(MODELS_PATH):
        methods = _ONE_MODEL
    if methods is None:
        raise Denied(Code.NOT_FOUND, f"Unknown request URL: {method} {path}.")
    endpoint = methods.get(method)
    if endpoint is None:
        allowed = ", ".join(methods)
        message = f"{path} does not take {method}; it takes {allowed}."
        raise Denied(Code.METHOD_NOT_ALLOWED, message, headers={"allow": allowed})
    return endpoint
