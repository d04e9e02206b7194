"""Which application answers a path, and to whom the console answers."""

from ipaddress import ip_address
from typing import Any

from bulk.http.paths import is_bulk_path

CONSOLE_PATHS = frozenset({"", "admin", "api", "static"})
"""The first parts of the paths that Django knows."""


def is_hot_path(path: str) -> bool:
    """For the generation application rather than Django. What neither knows is its 404."""
    first = path.lstrip("/").partition("/")[0]
    return first not in CONSOLE_PATHS and not is_bulk_path(path)


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
