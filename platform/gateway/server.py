"""Gateway and console on one port, with the limits that must hold before any application code runs.

    python -m gateway.server --host 127.0.0.1 --port 8000

Port 0 picks a free one. `{"event": "listening", "url": ...}` is logged once the port is open.
"""

import argparse
import gc
import os
import resource
import socket

import structlog
import uvicorn

from gateway.limits import GENERATION_BODY_BYTES
from gateway.transport.http_protocol import GuardedHttpProtocol
from gateway.transport.socket_protocol import GuardedSocketProtocol

APPLICATION = "control_plane.asgi:application"
BACKLOG = 2048
KEEP_ALIVE_S = 75
"""Longer than clients keep an idle connection, so that we don't close it under their next request."""
GRACEFUL_SHUTDOWN_S = 5
PING_INTERVAL_S = 20.0
"""Of sockets; one that doesn't answer within the same time again is closed."""
COLLECT_AFTER = (50_000, 5, 5)
"""Objects more than before; collections of the young until the older ones' turn. Python has 700, 10, 10."""

log = structlog.get_logger("gateway")


def server_config(graceful_shutdown_s: int) -> uvicorn.Config:
    """A stuck stream must not keep a stopping process alive: the time for a graceful end is always set."""
    return uvicorn.Config(
        APPLICATION,
        http=GuardedHttpProtocol,
        loop="uvloop",
        ws=GuardedSocketProtocol,
        ws_max_size=GENERATION_BODY_BYTES,
        ws_per_message_deflate=False,
        ws_ping_interval=PING_INTERVAL_S,
        ws_ping_timeout=PING_INTERVAL_S,
        lifespan="on",
        interface="asgi3",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        log_config=None,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=graceful_shutdown_s,
    )


def listening_socket(host: str, port: int) -> socket.socket:
    """Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    opened.bind((host, port))
    opened.listen(BACKLOG)
    return opened


def raise_open_files() -> None:
    """A connection is an open file, and many systems start processes with 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def collect_seldom() -> None:
    """Requests leave no cycles behind, so whatever grows is alive; looking through all of it stops every
    stream for up to 20 ms.
    """
    gc.set_threshold(*COLLECT_AFTER)


def main() -> None:
    options = _parser().parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "control_plane.settings")
    raise_open_files()
    collect_seldom()
    config = server_config(options.graceful_shutdown)
    config.load()
    opened = listening_socket(options.host, options.port)
    host = f"[{options.host}]" if ":" in options.host else options.host
    log.info("listening", url=f"http://{host}:{opened.getsockname()[1]}")
    uvicorn.Server(config).run(sockets=[opened])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gateway.server", description="Gateway and console.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=8000, help="0 picks a free one")
    parser.add_argument("--graceful-shutdown", type=int, default=GRACEFUL_SHUTDOWN_S, help="seconds")
    return parser


if __name__ == "__main__":
    main()
