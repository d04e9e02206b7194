"""Which application answers a path, and to whom the console answers."""

from ipaddress import ip_address
from typing import Any

from bulk.http.paths import is_bulk_path

HOT_PATHS = frozenset({"/v1", "/tokenize", "/detokenize", "/health", "/ready", "/metrics"})


def is_hot_path(path: str) -> bool:
    """For the generation application rather than Django; whatever else is under /v1/ is its 404."""
    return path in HOT_PATHS or (path.startswith("/v1/") and not is_bulk_path(path))


def is_loopback(server: Any) -> bool:
    """`server` is the local end of a connection: (host, port), or (path, None) for a unix socket."""
    if not server:
        return False
    host, port = server
    if port is None:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
